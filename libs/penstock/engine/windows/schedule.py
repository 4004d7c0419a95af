"""The schedule of batch closings and evaluations (docs/semantics.md §3, "Trigger"; §2, "Progress").

A pass starts when watermarks advance. The pass closes the batches of all streams in order of time. Between two
closings, the pass performs the due evaluations in order of their instants. An evaluation is due when all streams of its
query have closed all batches up to and including the instant. The tuples that a query publishes reach the readers of
the derived stream in the same pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from penstock.engine.answers.block_log import Unpolled
from penstock.engine.intake.streams import LiveStream
from penstock.engine.standing.stream_readers import Readers
from penstock.engine.windows.backlog import Backlog
from penstock.engine.windows.reach import first_closings, last_of, reach
from penstock.engine.windows.trigger import CountTrigger, GridTrigger
from penstock.errors import LimitError
from penstock.event_time.gaps import Gap
from penstock.event_time.grid import batch_start, closed_until
from penstock.event_time.time_units import unit_hint

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from penstock.engine.limits import Limits
    from penstock.engine.standing.groups import Cohort, Group, Member

_NOTHING: Mapping[Group, int | None] = MappingProxyType({})


class Work(Protocol):
    """The actions that the schedule performs."""

    def fire(self, cohort: Cohort) -> None:
        """Evaluate the cohort's next instant. If the cohort publishes a stream, the stream gets the tuples and a new
        watermark.
        """

    def closed(self, stream: LiveStream, batches: int) -> None:
        """Record that a stream has closed batches. `batches` is the number of closed batches with tuples."""

    def counted(self, cohort: Cohort) -> None:
        """Advance the stream that a cohort publishes. The cohort's count windows have just received closed batches. The
        cohort will report nothing more at or before the new watermark.
        """


def fullest(members: Iterable[Member]) -> Member | None:
    """Return the member with the most bytes of pending answers. Members with a subscriber are left out. The result is
    None if no other member has pending answers.
    """
    sizes = {member: member.result_queue.bytes() for member in members if not member.result_queue.subscribed}
    found = max(sizes, key=sizes.__getitem__, default=None)
    return found if found is not None and sizes[found] else None


class Schedule:
    """The order of batch closings and evaluations in an engine, and the limits on evaluations. `at_once`: see
    `Backlog`.
    """

    def __init__(self, limits: Limits, at_once: int | None = None) -> None:
        self._limits = limits
        self.backlog = Backlog(reach, at_once)
        self.readers = Readers()
        self.unpolled = Unpolled()
        self._coming = 0  # estimated size in bytes of the new answers, during a check
        self.members: dict[str, Member] = {}  # the registry's members, by name
        # whether the write-ahead log is being replayed; recovery limits pending evaluations itself
        self.replaying = False
        self.unfinished: dict[LiveStream, None] = {}  # streams to which an interrupted pass must return

    # ---- readers
    def add(self, group: Group) -> None:
        """Add a group as a reader of its streams."""
        self.readers.add(group)

    def remove(self, group: Group) -> None:
        """Remove a group."""
        self.backlog.remove(group)
        self.readers.remove(group)

    # ---- checks before a change
    def check(self, moved: Collection[LiveStream], watermark: int, point: int, *, leaps: bool = False) -> None:
        """Raise LimitError if a change would exceed `max_catch_up`, `max_unpolled` or `unpolled_mb`.

        `moved` contains the streams that would advance. `watermark` is their new watermark in ms. `point` is the
        registration point that waiting cohorts would get. `leaps`: whether the caller skips the instants of queries
        that would exceed `max_catch_up`.
        """
        if not any(self.readers.of(stream) for stream in moved):
            return
        targets = {stream: closed_until(watermark, stream.batch_ms) for stream in moved}
        points = dict.fromkeys(targets, point)
        self._coming = 0
        for group in self._downstream(targets):
            for cohort in group.cohorts:
                self._check_cohort(cohort, targets, points, leaps=leaps)

    def _check_cohort(
        self, cohort: Cohort, targets: dict[LiveStream, int], points: dict[LiveStream, int], *, leaps: bool
    ) -> None:
        group = cohort.group
        until = reach(group, targets)
        if until is None:
            return
        behind = group in self.backlog
        if group.grid is None:  # count windows: it is unknown whether there will be reports
            if behind:
                return
            if until != reach(group):
                self._check_unpolled(cohort, 1)
            if (stream := group.publishes) is not None:
                points.setdefault(stream, min(until, *first_closings(group, targets, points)))
                targets[stream] = closed_until(until, stream.batch_ms)
            return
        # If a query is catching up, some of its instants are due already. The change does not add these instants.
        last = reach(group) if behind else last_of(cohort, points)
        if last is None or (first := group.grid.next_after(last)) > until:
            return
        due = group.grid.count(last, until)
        leapt = due > self._limits.max_catch_up
        if leapt and not leaps:
            raise LimitError(
                f"query {cohort.first.name} would fire {due} times (max_catch_up is {self._limits.max_catch_up}): "
                f"advance in smaller steps, or jump with advance(..., skip=True){unit_hint(last, until)}",
                limit="max_catch_up",
            )
        if behind:
            return  # this pass does not evaluate the cohort
        if not leapt:
            self._check_unpolled(cohort, 1 if leaps else due)
        if (stream := group.publishes) is not None:
            following = group.grid.next_after(until)
            targets[stream] = closed_until(following - 1, stream.batch_ms)
            points.setdefault(stream, batch_start(first, stream.batch_ms))

    def _check_unpolled(self, cohort: Cohort, due: int) -> None:
        """Raise LimitError if `due` additional evaluations of a cohort would exceed `max_unpolled` or `unpolled_mb`.

        With REPORT NONEMPTY, the number of reported evaluations is unknown. `max_unpolled` is then exceeded only if a
        queue is already full. Each new answer is assumed to be as large as the cohort's last answer.
        """
        if self.replaying:
            return
        most = self._limits.max_unpolled
        fresh = 1 if cohort.group.query.report_nonempty else due
        if len(cohort.log) + fresh > most:
            for member in cohort:
                if not member.result_queue.subscribed and (held := len(member.result_queue)) + fresh > most:
                    raise LimitError(
                        f"query {member.name} holds {held} evaluations that were not polled, and {due} more would fire "
                        f"(max_unpolled is {most}): poll it, subscribe to it or stop it, or advance in smaller steps",
                        limit="max_unpolled",
                    )
        self._coming += due * cohort.log.last_bytes
        limit = self._limits.unpolled_mb << 20
        if 0 < limit < self.unpolled.bytes + self._coming:
            self._check_bytes(cohort)

    def _check_bytes(self, cohort: Cohort) -> None:
        """Raise LimitError: the stored answers together with the expected answers exceed `unpolled_mb`. If all members
        of the cohort have subscribers, the call has no effect, because answers for subscribers are not stored.
        """
        if all(member.result_queue.subscribed for member in cohort):
            return
        holder = fullest(self.members.values()) or cohort.first
        raise LimitError(
            f"queries hold {self.unpolled.bytes >> 20} MB of answers that were not polled, and about "
            f"{self._coming >> 20} MB more would come (unpolled_mb is {self._limits.unpolled_mb}): poll, subscribe to "
            f"or stop query {holder.name}, or advance in smaller steps",
            limit="unpolled_mb",
        )

    def _downstream(self, streams: Iterable[LiveStream]) -> Iterator[Group]:
        """Yield, in order of depth, the groups that read one of the streams. A group can read a stream directly or
        through derived streams.
        """
        queue: list[tuple[int, int, Group]] = []
        seen: set[Group] = set()

        def add(stream: LiveStream) -> None:
            for group in self.readers.of(stream):
                if group not in seen:
                    seen.add(group)
                    heappush(queue, (group.depth, len(seen), group))

        for stream in streams:
            add(stream)
        while queue:
            group = heappop(queue)[2]
            yield group
            if group.publishes is not None:
                add(group.publishes)

    # ---- the pass
    def run(self, moved: Iterable[LiveStream], work: Work) -> None:
        """Close batches and evaluate instants after the streams `moved` have advanced. The call closes all batches that
        the watermarks permit. The call also evaluates all instants that become due, except the instants of groups in
        the backlog. The call also completes a pass that was interrupted, for example by Ctrl-C.
        """
        interrupted = list(self.unfinished)
        for stream in moved:
            self.unfinished[stream] = None
        _Pass(work, self.unfinished, self.backlog, self.readers).run(interrupted)
        self.unfinished.clear()

    def skip(
        self, moved: Iterable[LiveStream], at_most: int = 0, reached: Mapping[Group, int | None] = _NOTHING
    ) -> Iterator[tuple[Cohort, Gap]]:
        """Skip the due instants of each cohort with more than `at_most` due instants. Yields each such cohort and the
        gap of skipped instants. The caller must advance the stream that the cohort publishes.

        `reached` contains a time for each group in the backlog. The group's instants at or before this time were
        already due when the streams moved. The call does not skip these instants.
        """
        targets: dict[LiveStream, int] = {}  # for derived streams: the `target_ms` that they will have
        for group in self._downstream(moved):
            until = reach(group, targets)
            if until is None:
                continue
            for cohort in list(group.cohorts):
                trigger = cohort.trigger
                if (before := reached.get(group)) is not None:
                    gap = Gap(before, until, 0 if group.grid is None else group.grid.count(before, until))
                    if isinstance(trigger, GridTrigger) and gap.count > at_most:
                        trigger.omit(gap)
                        yield cohort, gap
                elif isinstance(trigger, GridTrigger) and trigger.exceeds(at_most, until):
                    after, count = trigger.last, trigger.skip(until)
                    yield cohort, Gap(after, until, count)
            if (stream := group.publishes) is not None and any(cohort.trigger is not None for cohort in group.cohorts):
                following = until if group.grid is None else group.grid.next_after(until) - 1
                targets[stream] = closed_until(following, stream.batch_ms)


@dataclass(slots=True, order=True)
class _Due:
    """A cohort in the queue of evaluations. The queue is sorted by instant, then by depth, then by the cohort's number
    (the oldest cohort first).
    """

    time: int
    depth: int
    number: int
    cohort: Cohort = field(compare=False)


class _Pass:
    """One pass (see the module docstring). A pass that was interrupted can be resumed. `unfinished` contains the
    streams to which the pass must return.
    """

    def __init__(self, work: Work, unfinished: dict[LiveStream, None], backlog: Backlog, readers: Readers) -> None:
        self._work = work
        self._unfinished = unfinished
        self._backlog = backlog
        self._readers = readers
        self._due: list[_Due] = []
        self._queued: dict[Cohort, int] = {}
        self._stops: list[tuple[int, int, LiveStream]] = []
        self._stop_of: dict[LiveStream, int] = {}

    def run(self, interrupted: Iterable[LiveStream]) -> None:
        for stream in interrupted:
            if stream.closed_ms is not None:
                self._closed(stream, 0)  # the interrupted pass has possibly closed some of its batches
        for stream in list(self._unfinished):
            self._moved(stream)
        while True:
            first = self._first_due()
            if self._stops and (first is None or self._stops[0][0] <= first.time):
                self._close_next()
            elif first is None:
                return
            elif self._close_for(first):
                self._pop_due()
                self._fire(first.cohort)

    def _moved(self, stream: LiveStream) -> None:
        self._queue_stop(stream)
        for group in self._readers.of(stream):
            self._put_off(group)
            self._queue_group(group)

    # ---- evaluations
    def _put_off(self, group: Group) -> None:
        """Move a group to the backlog if more of its instants are due than one pass evaluates."""
        if self._backlog.at_once is not None and (until := reach(group)) is not None:
            self._backlog.consider(group, until)

    def _queue_group(self, group: Group) -> None:
        if group in self._backlog:
            return
        until = reach(group)
        if until is None:
            return
        for cohort in group.cohorts:
            time = cohort.next
            if time is not None and time <= until and self._queued.get(cohort) != time:
                self._queued[cohort] = time
                heappush(self._due, _Due(time, group.depth, cohort.number, cohort))

    def _first_due(self) -> _Due | None:
        """Return the earliest valid entry of the queue, or None. The call removes outdated entries. An entry is
        outdated if its cohort was merged, or if a count window has found an earlier report.
        """
        while self._due:
            first = self._due[0]
            if not first.cohort.dissolved and first.cohort.next == first.time:
                return first
            self._pop_due()
        return None

    def _pop_due(self) -> None:
        popped = heappop(self._due)
        if self._queued.get(popped.cohort) == popped.time:
            del self._queued[popped.cohort]

    def _fire(self, cohort: Cohort) -> None:
        group = cohort.group
        if group.publishes is not None:
            self._unfinished[group.publishes] = None
        self._work.fire(cohort)
        self._queue_group(group)
        if group.publishes is not None:
            self._moved(group.publishes)

    # ---- closings
    def _queue_stop(self, stream: LiveStream) -> None:
        end = stream.next_stop()
        if end is not None and self._stop_of.get(stream) != end:
            self._stop_of[stream] = end
            heappush(self._stops, (end, stream.number, stream))

    def _close_next(self) -> None:
        """Take the earliest batch end from the queue. For every stream that is queued for this end, close all batches
        up to and including this end.
        """
        end = self._stops[0][0]
        streams: dict[LiveStream, None] = {}
        while self._stops and self._stops[0][0] == end:
            stream = heappop(self._stops)[2]
            if self._stop_of[stream] == end:
                streams[stream] = None
        open_ = [stream for stream in streams if stream.closed_ms is None or stream.closed_ms < end]
        for stream, held in zip(open_, LiveStream.close_together(open_, end), strict=True):
            self._closed(stream, held)
        for stream in streams:
            if stream.closed_ms != stream.target_ms:
                self._queue_stop(stream)

    def _close_for(self, due: _Due) -> bool:
        """Close the batches that contain an instant. Returns False if a count window finds a report in these batches,
        because this report can be earlier than the instant.
        """
        before = len(self._due)
        for stream in due.cohort.group.streams:
            if not stream.has_closed(due.time):
                self._closed(stream, stream.close_for(due.time))
        return len(self._due) == before

    def _closed(self, stream: LiveStream, batches: int) -> None:
        self._work.closed(stream, batches)
        for group in self._readers.of(stream):
            if group.grid is None:
                self._count(group, stream)

    def _count(self, group: Group, stream: LiveStream) -> None:
        """Hand the tuples of a stream's closed batches to the count windows of a group. The call also queues the group,
        and advances the group's derived stream, if there is one.
        """
        for cohort in group.cohorts:
            if isinstance(cohort.trigger, CountTrigger):
                cohort.trigger.closed(stream)
            if group.publishes is not None:
                self._unfinished[group.publishes] = None
                self._work.counted(cohort)
                self._moved(group.publishes)
        self._put_off(group)
        self._queue_group(group)
