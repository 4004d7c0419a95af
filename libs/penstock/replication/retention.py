"""Retention floors: the bounds of the data that the cluster's queries can still read. The floors follow from the
committed progress of the buckets and from the registrations.

For each query of the cluster, every process retains the slices and append logs that the query needs after its last
commit. An engine that takes over a query therefore finds these data in its own memory or in the stores (ADR 28).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.log import START, Partition
from penstock.quarantine import InternalRecords
from penstock.replication.history import NOTHING
from penstock.replication.progress_log import ProgressView
from penstock.replication.registration import buckets_of, stable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.registration import Bounds, GroupRegistrations
    from penstock.replication.replica import Replica, W
    from penstock.replication.sequencer import Step
    from penstock.wire import GroupProgress

_POLL = 256


@dataclass(frozen=True, slots=True)
class RetentionFloor:
    """Bounds of the data that queries of the cluster can still read.

    `retained`: for each stream, a time in ms. Queries need the stream's tuples after this time. A stream without an
    entry has no tuples that queries need. `evaluated`: for each stream, a time in ms. The view of each future
    evaluation contains at least the stream's batches that end at or before this time. `step`, `insertions`: the oldest
    snapshot that queries need, as a step of the total order and as a number of insertions.
    """

    step: int
    insertions: int
    retained: dict[str, int]
    evaluated: dict[str, int]


class Commitments:
    """The committed progress of every bucket, as known to this process."""

    def __init__(self, log: Log, topics: ClusterTopics) -> None:
        self._buckets = topics.buckets
        self._reader = log.reader({Partition(topics.progress, i): START for i in range(topics.buckets)})
        self._committed: dict[int, dict[int, GroupProgress]] = {}
        self._steps: dict[int, int] = {}  # steps of the last commits
        records = InternalRecords(log, topics.names)
        self._views = {i: ProgressView(records) for i in range(topics.buckets)}
        # by bucket and group: the progress before the last instant, and the step of its commit
        self._earlier: dict[tuple[int, int], tuple[GroupProgress, int]] = {}
        self._passed: set[int] = set()  # buckets with a transaction that `learn` has read since `release`

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()

    def learn(self, own: Iterable[int] = ()) -> bool:
        """Read new commits from the progress topic. `own`: buckets that this process holds. Commits of these buckets
        are not applied here, because this process calls `record` for them. Returns whether a commit of another bucket
        was applied.
        """
        learnt = False
        for message in self._reader.poll(_POLL):
            if not self._views[message.partition].feed(message):
                continue
            self._passed.add(message.partition)
            if message.partition not in own:
                self.release(message.partition)
                learnt = True
        return learnt

    def release(self, bucket: int) -> None:
        """Apply the last progress that `learn` has read, but not applied, for a bucket. Call when this process has
        released the bucket, because the bucket's new engine possibly never commits.
        """
        if bucket in self._passed:
            self._passed.discard(bucket)
            self.record(bucket, self._views[bucket].groups, self._views[bucket].step)

    def record(self, bucket: int, committed: Mapping[int, GroupProgress], step: int) -> None:
        """Record a bucket's committed progress, by group, and the step of its commit."""
        before, before_step = self._committed.get(bucket, {}), self._steps.get(bucket, -1)
        for group, progress in committed.items():
            known = before.get(group)
            if known is None:
                self._earlier.pop((bucket, group), None)
            elif known.last_ms != progress.last_ms:
                self._earlier[bucket, group] = known, before_step
        for group in before.keys() - committed.keys():
            self._earlier.pop((bucket, group), None)
        self._committed[bucket] = dict(committed)
        self._steps[bucket] = step

    def forget_stopped(self, replica: Replica[W]) -> None:
        """Remove stopped queries whose buckets have committed since the stop. Such queries have no evaluations left."""
        for number, registration in list(replica.registrations.stopped.items()):
            stopped, record = registration.stopped, registration.record
            buckets = buckets_of(record.group, record.parts, self._buckets)
            if stopped is not None and all(stopped <= self._steps.get(bucket, -1) for bucket in buckets):
                replica.registrations.remove(number)

    def ready(self, replica: Replica[W], step: Step) -> bool:
        """Return whether a step can be applied. A step that drops a stream waits for stopped queries that read the
        stream (`Replica.ready`). If the step would have to wait, this method first removes stopped queries that have no
        evaluations left. Such queries can still exist, because the progress of their bucket was possibly read before
        the stop was applied.
        """
        if not replica.ready(step):
            self.forget_stopped(replica)
        return replica.ready(step)

    def _groups(self, replica: Replica[W]) -> Iterator[tuple[GroupRegistrations, int]]:
        """Yield each group with each bucket that evaluates queries of the group."""
        for group in replica.registrations.groups:
            for bucket in buckets_of(group.group, group.parts, self._buckets):
                yield group, bucket

    def floors(self, replica: Replica[W]) -> dict[str, int]:
        """Return a time in ms for each declared stream with progress, by the command number of the declaration. No
        window and no previous answer of a query contains tuples of the stream at or before this time, and no later
        query will see such tuples (ADR 50).

        The previous answer of a group is that of its last committed instant. The windows of this instant begin where
        the progress before this instant says. Queries that are registered later see no tuples of closed batches.
        """
        found: dict[str, int] = {}
        for iri, declared in replica.declared.items():
            closed = replica.runtime.streams.get(iri).closed_ms
            if closed is not None:
                found[str(declared)] = closed
        for group, bucket in self._groups(replica):
            earlier, step = self._earlier.get((bucket, group.group), (None, -1))
            for iri in group.streams:
                if iri not in replica.declared:
                    continue
                number = str(replica.declared[iri])
                floor = NOTHING  # count windows: the queries of a group have previous answers of different instants
                if not group.counts:
                    floor = min(_previous_floor(group, each, iri, earlier, step) for each in group.alike(step))
                found[number] = min(floor, found.get(number, floor))
        return found

    def retention_floor(self, replica: Replica[W]) -> RetentionFloor:
        """Return the current retention floor."""
        history = replica.history
        retained: dict[str, int] = {}
        evaluated: dict[str, int] = {}
        oldest = history.step
        due: dict[tuple[tuple[str, ...], int], int] = {}  # of most queries, the streams and the last instant are equal
        for group, bucket in self._groups(replica):
            streams = group.streams
            committed, step = self._committed.get(bucket, {}).get(group.group), self._steps.get(bucket, -1)
            reads_past = group.past and _keep_graph(replica, streams)
            for each in group.alike(step, None if committed is None else committed.last_ms):
                if each.point is None or each.begins_after is None:
                    continue
                progress = committed if step >= each.last_step else None  # otherwise, it belongs to other queries
                last = each.begins_after
                if progress is not None and progress.last_ms is not None:
                    last = max(last, progress.last_ms)
                if group.past and not reads_past:
                    last = max(last, _due_until(replica, streams, last))
                if (key := (streams, last)) not in due:
                    due[key] = history.due(*key)
                oldest = min(oldest, due[key] if reads_past else max(each.first_step, due[key]))
                for iri in streams:
                    earliest = each.point if progress is None else progress.retained.get(iri, each.point)
                    retained[iri] = min(earliest, retained.get(iri, earliest))
                    evaluated[iri] = min(last, evaluated.get(iri, last))
        past = _past_of_graph(replica)
        oldest = min([oldest, *(step for step, _ in past.values())])
        for iri, (_, time) in past.items():
            evaluated[iri] = min(time, evaluated.get(iri, time))
        if retained or past:
            for iri in replica.declared:
                then = history.tracks[iri].at(oldest)
                then = NOTHING if then is None else then
                evaluated[iri] = min(then, evaluated.get(iri, then))
        return RetentionFloor(oldest, history.tracks[""].at(oldest) or 0, retained, evaluated)


def _previous_floor(
    group: GroupRegistrations, bounds: Bounds, iri: str, earlier: GroupProgress | None, step: int
) -> int:
    """Return a time in ms up to which neither the windows nor the previous answers of queries use tuples of a stream.
    `bounds`: the queries, all of one group. `earlier`, `step`: the group's progress before its last committed instant,
    or None, and the step of that commit.
    """
    floor = NOTHING if bounds.point is None or group.past else bounds.point
    known = earlier is not None and step >= bounds.last_step
    return earlier.retained.get(iri, floor) if earlier is not None and known else floor


def _keep_graph(replica: Replica[W], streams: Iterable[str]) -> bool:
    """Return whether the stored graph is readable as of each retained instant of all these streams."""
    return all(replica.runtime.streams.get(iri).declaration.graph_history for iri in streams)


def _past_of_graph(replica: Replica[W]) -> dict[str, tuple[int, int]]:
    """Return the start of the period for which the stored graph is retained, by stream with `graph_history`. The start
    is a pair (step, time in ms): the stream keeps tuples after this time, and was closed up to this time at this step.

    The instants of a query that begins in the past are after this time, because the windows of its first instant
    contain only retained tuples. The instants became due at this step or later.
    """
    found: dict[str, tuple[int, int]] = {}
    for stream in replica.runtime.streams:
        if stream.declaration.graph_history:
            closed, track = replica.ended.get(stream.iri, stream.closed_ms), replica.history.tracks[stream.iri]
            if closed is None:
                found[stream.iri] = replica.history.step, NOTHING
            else:
                time = closed - stream.declaration.retention_ms
                step = track.reached(time)
                found[stream.iri] = replica.history.step if step is None else step, time
    return found


def _due_until(replica: Replica[W], streams: tuple[str, ...], last: int) -> int:
    """Return a time in ms, for a query that reads `streams` and begins in the past. The query's instants up to and
    including this time are due. If no instant is due, the time is `last`. The query does not read the stored graph, so
    its due instants need no append logs. A text that replaces the query begins after the due instants.
    """
    closed = {iri: replica.runtime.streams.get(iri).closed_ms for iri in streams}
    reached = stable(streams, closed, replica.ended)
    return last if reached is None else reached
