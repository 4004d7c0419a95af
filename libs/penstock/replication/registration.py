"""A standing query in a replica, and the leaps, handovers and beginnings in the past that follow from its registration
record.

A leap is one advance of one stream that makes more than `max_catch_up` instants of a query due (docs/semantics.md §2,
ADR 57). At a handover, a query takes over from the query that it replaces (ADR 95). Leaps and handovers depend only on
the log: on the registration records of the queries, the registration points, and the progress of the streams. The same
holds for the first instant of a query that begins in the past (ADR 107). All engines therefore compute the same gaps,
handovers and first instants. An engine that lags behind the log applies many steps with small advances, and evaluates
all instants of these steps.

`Registrations` holds the standing queries of a replica. The module also converts declarations of streams to records
and back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.engine.history.beginning import StreamPast, asks_for_past, beginning_of
from penstock.engine.intake.declaration import Declaration
from penstock.engine.standing.handover import Handover, Reads, WindowSpan, hand_over
from penstock.errors import QueryError
from penstock.event_time.gaps import Gap
from penstock.event_time.grid import Grid
from penstock.replication.history import FOR_EVER
from penstock.wire import QueryRegistration, StreamDeclaration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, ValuesView


MAX_GAPS = 1_000
"""Maximum number of gaps per query in a replica. Beyond this number, the oldest gaps are removed."""
_REPLACING = 1 << 32  # greater than all command numbers; part of the group numbers of replacing queries
_SINCE_POINT = -1  # the recorded range of a window that begins with the registration point


@dataclass(slots=True)
class Registration:
    """A standing query in a replica. `point`: the registration point P, or None until one of the query's streams has
    progress.

    A stopped query remains until its bucket has committed the evaluations that were due before the stop. These are the
    instants up to and including `until`.
    """

    record: QueryRegistration
    point: int | None
    step: int
    stopped: int | None = None  # step of the stop
    until: int | None = None
    pointed: int | None = None  # step at which `point` became known
    gaps: tuple[Gap, ...] = ()  # instants that leaps of event time skip
    leapt: int | None = None  # step of the last gap
    # if the query has replaced another, or begins in the past: it begins after this time in ms
    after: int | None = None
    replaced: bool = False  # whether another query has replaced it
    # the reason why the query cannot begin in the past, or None. A refused query has no registration point and is never
    # evaluated
    refused: str | None = None

    @property
    def begins_after(self) -> int | None:
        """The time in ms after which the query begins. None until this time is known."""
        return self.point if self.after is None else self.after

    def begin_in_past(self, pasts: Mapping[str, StreamPast]) -> None:
        """Let a new query begin in the past, if it asks for this. If tuples that it needs are released, the query is
        refused. `pasts`: for each stream of the query (by IRI), the facts that are known at the registration. The
        registration is one step of the total order, so all replicas know the same facts at this step.
        """
        record = self.record
        if not record.past or not asks_for_past(record.starting_at_ms, pasts.values()):
            return
        try:
            beginning = beginning_of(reads_of(record), pasts, record.text)
        except QueryError as error:
            self.point, self.refused = None, error.message
        else:
            self.point, self.after = beginning.point, beginning.after


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds over one or more registrations. `point`: the earliest registration point, or None if one of the queries
    has none. `begins_after`: the latest time after which one of the queries begins, or None. Both are in ms.
    `first_step`, `last_step`: the first and the last step of the registrations.
    """

    point: int | None
    begins_after: int | None
    first_step: int
    last_step: int


def buckets_of(group: int, parts: int, buckets: int) -> dict[int, tuple[int, ...]]:
    """Return the buckets that evaluate the queries of a group, each with the numbers of its parts. A query has one
    part. `parts`: the number of parts. `buckets`: the number of buckets of the cluster.
    """
    found: dict[int, tuple[int, ...]] = {}
    for part in range(parts):
        bucket = (group + part) % buckets
        found[bucket] = (*found.get(bucket, ()), part)
    return found


class GroupRegistrations:
    """The registrations of one group whose queries read the same streams in the same way. `past`: whether the queries
    begin in the past. `counts`: whether their windows count tuples. `parts`: the number of parts of the group's set.
    """

    def __init__(self, group: int, streams: tuple[str, ...], past: bool, counts: bool, parts: int = 1) -> None:
        self.group, self.streams, self.past, self.counts, self.parts = group, streams, past, counts, parts
        self.members: dict[int, Registration] = {}  # by query number
        self._bounds: Bounds | None = None  # None: not computed since the last change

    @classmethod
    def key(cls, record: QueryRegistration) -> tuple[int, tuple[str, ...], bool, bool, int]:
        """Return the arguments of the group to which a query belongs."""
        return record.group, record.streams, record.past, not record.steps, record.parts

    def changed(self) -> None:
        """Compute the bounds again when they are next needed."""
        self._bounds = None

    def alike(self, step: int, committed_ms: int | None = FOR_EVER) -> Iterable[Bounds]:
        """Return bounds of registrations for which the same progress decides what they retain.

        `step`: the step of the last commit of the group's bucket. `committed_ms`: the group's last committed instant in
        ms, or None. If this commit is later than all registrations of the group, and if the instant is after the begin
        of each query, the result is one element. Otherwise, each registration has an element.
        """
        if self._bounds is None:
            all_of = [_bounds_of(registration) for registration in self.members.values()]
            points = [each.point for each in all_of if each.point is not None]
            begins = [each.begins_after for each in all_of if each.begins_after is not None]
            complete = len(points) == len(begins) == len(all_of)
            self._bounds = Bounds(
                min(points) if complete else None,
                max(begins) if complete else None,
                min(each.first_step for each in all_of),
                max(each.last_step for each in all_of),
            )
        bounds = self._bounds
        begun = bounds.begins_after is not None and committed_ms is not None and bounds.begins_after <= committed_ms
        if begun and bounds.last_step <= step:
            return (bounds,)
        return map(_bounds_of, self.members.values())


def _bounds_of(registration: Registration) -> Bounds:
    return Bounds(registration.point, registration.begins_after, registration.step, registration.step)


class Registrations(Mapping[int, Registration]):
    """The registrations of a replica, by query number, in the order of registration. Stopped queries are included until
    they are removed.

    Retention floors read all registrations after each commit. With many queries, most registrations are alike in what
    they retain. The floors therefore read the bounds of `groups` instead of each registration.
    """

    def __init__(self) -> None:
        self._all: dict[int, Registration] = {}
        self._standing: dict[str, Registration] = {}  # by name; the queries that are not stopped
        self.stopped: dict[int, Registration] = {}
        self._groups: dict[tuple[int, tuple[str, ...], bool, bool, int], GroupRegistrations] = {}

    def __getitem__(self, number: int) -> Registration:
        return self._all[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def values(self) -> ValuesView[Registration]:
        """Return the registrations."""
        return self._all.values()

    @property
    def groups(self) -> ValuesView[GroupRegistrations]:
        """All registrations, by group. Each registration is a member of one group."""
        return self._groups.values()

    def standing(self, name: str) -> Registration | None:
        """Return the registration of the query `name`. None if no query has this name, or if the query was stopped."""
        return self._standing.get(name)

    def add(self, registration: Registration) -> None:
        """Add a registration."""
        record = registration.record
        self._all[record.number] = registration
        if registration.stopped is None:
            self._standing[record.name] = registration
        else:
            self.stopped[record.number] = registration
        key = GroupRegistrations.key(record)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = GroupRegistrations(*key)
        group.members[record.number] = registration
        group.changed()

    def stop(self, registration: Registration, step: int, until: int | None) -> None:
        """Stop a query at a step. `until`: its last due instant in ms (see `Registration`)."""
        registration.stopped, registration.until = step, until
        if self._standing.get(registration.record.name) is registration:
            del self._standing[registration.record.name]
        self.stopped[registration.record.number] = registration

    def set_point(self, registration: Registration, point: int, step: int) -> None:
        """Set the registration point of a query that waited for the first progress of its streams, at a step."""
        registration.point, registration.pointed = point, step
        self._groups[GroupRegistrations.key(registration.record)].changed()

    def remove(self, number: int) -> None:
        """Remove a stopped query, by number."""
        record = self._all.pop(number).record
        del self.stopped[number]
        key = GroupRegistrations.key(record)
        group = self._groups[key]
        del group.members[number]
        group.changed()
        if not group.members:
            del self._groups[key]


def group_of(
    known: int | None,
    number: int,
    earlier: QueryRegistration | None,
    streams: tuple[str, ...],
    buckets: int,
    past: bool = False,
) -> tuple[int, bool]:
    """Return the number of a query's group, and whether the query is alone in the group. `number`: the query's number.

    `known`: the number of the existing group with the query's template, or None. `streams`: the query's streams.
    `earlier`: the query that this query replaces, or None. A query and its replacement are in the same bucket, so that
    their answers are committed in order. If the two queries read different streams, the new query can have due instants
    that the existing group has already answered. The new query is then alone in its group. A query that begins in the
    past (`past`) is alone, too.
    """
    if past:
        return number, True
    if earlier is None:
        return (number if known is None else known), False
    bucket = earlier.group % buckets
    same = set(earlier.streams) == set(streams)
    if same and known is not None and known % buckets == bucket:
        return known, False
    return (_REPLACING + number) * buckets + bucket, not same or known is not None


def windows_of(reads: Reads) -> tuple[int, ...]:
    """Return time windows as numbers for a record. Each window gives three numbers: the position of its stream, its
    range and its step.
    """
    return tuple(
        number
        for window in reads.windows
        for number in (
            reads.streams.index(window.stream),
            _SINCE_POINT if window.range_ms is None else window.range_ms,
            window.step_ms,
        )
    )


def reads_of(record: QueryRegistration) -> Reads:
    """Return the streams, grid and windows that a query reads, from the query's record."""
    numbers = iter(record.windows)
    windows = tuple(
        WindowSpan(record.streams[stream], None if range_ms == _SINCE_POINT else range_ms, step_ms)
        for stream, range_ms, step_ms in zip(numbers, numbers, numbers, strict=True)
    )
    return Reads(record.streams, grid_of(record), windows)


def handover_from(
    earlier: Registration,
    record: QueryRegistration,
    closed: Mapping[str, int | None],
    ended: Mapping[str, int | None],
    retentions: Mapping[str, int],
) -> Handover | None:
    """Return the handover from a query to the query that replaces it. None if the earlier query has no registration
    point yet.

    `closed`: the end in ms of each stream's last closed batch, by IRI; None for a stream without progress. `ended`: the
    same, but only for ended streams. `retentions`: the declared retention of each stream in ms.
    """
    point, begins_after = earlier.point, earlier.begins_after
    if point is None or begins_after is None:
        return None
    reached = stable(earlier.record.streams, closed, ended)
    until = begins_after if reached is None else max(reached, begins_after)
    ends = {iri: end for iri in closed if (end := ended.get(iri, closed[iri])) is not None}
    retained = {iri: end - retentions[iri] for iri, end in ends.items()}
    return hand_over(reads_of(earlier.record), reads_of(record), point, until, ends, retained, record.not_before_ms)


def grid_of(record: QueryRegistration) -> Grid | None:
    """Return the grid of a query's instants, or None if its windows count tuples."""
    if not record.steps:
        return None
    start = record.starting_at_ms
    return Grid(start or 0, record.steps, bounded=start is not None)


def stable(streams: Iterable[str], closed: Mapping[str, int | None], ended: Mapping[str, int | None]) -> int | None:
    """Return the time in ms up to which all streams are closed (Stable_VTS in Wukong+S). None if a stream has no
    progress. `closed`: the end of each stream's last closed batch, in ms.

    Ended streams do not count, unless all streams have ended. `ended`: the end of the last closed batch of each ended
    stream, by IRI. If all streams have ended, the result is the latest of these ends.
    """
    names = list(streams)
    live = [closed[iri] for iri in names if iri not in ended]
    if not live:
        return max((end for iri in names if (end := ended[iri]) is not None), default=None)
    found = [end for end in live if end is not None]
    return min(found) if len(found) == len(live) else None


def gap_of(record: QueryRegistration, begins_after: int | None, before: int | None, now: int | None) -> Gap | None:
    """Return the gap of a query after one advance of a stream. The gap consists of the instants that became due by the
    advance. If at most `max_catch_up` instants became due, there is no gap, and the result is None. The result is also
    None for a query whose windows count tuples, and if `begins_after` or `now` is None.

    `begins_after`: the time after which the query begins. This time is the registration point, unless the query has
    replaced another query. `before`, `now`: the stable times (see `stable`) before and after an advance. All times are
    in ms.
    """
    grid = grid_of(record)
    if grid is None or begins_after is None or now is None:
        return None
    after = begins_after if before is None else max(begins_after, before)
    count = grid.count(after, now)
    return Gap(after, now, count) if count > record.max_catch_up else None


def declaration_of(record: StreamDeclaration) -> Declaration:
    """Return the declaration in a record of the log. `slice_mb` is omitted, because the dispatcher enforces
    this limit.
    """
    timing = "all" if record.timing_all else record.timing
    found = Declaration.checked(
        record.iri,
        batch_ms=record.batch_ms,
        lateness_ms=record.lateness_ms,
        timing=timing,
        absorb_into=record.absorb_into,
        retention_ms=record.retention_ms,
        idle_timeout_ms=record.idle_timeout_ms,
        max_ahead_ms=record.max_ahead_ms,
        slice_mb=record.slice_mb,
        graph_history=record.graph_history,
    )
    return replace(found, slice_mb=None)


def declaration_record(
    number: int,
    name: str,
    checked: Declaration,
    publisher: str | None = None,
    begin: tuple[int, tuple[int, ...], tuple[int, ...]] | None = None,
) -> StreamDeclaration:
    """Return the record of a declaration. `number`: the number of the command. `begin`: version of the predicate
    filter, and the end offsets of the stream's topics (see `StreamDeclaration`).
    """
    return StreamDeclaration(
        number,
        checked.iri,
        name,
        checked.batch_ms,
        checked.lateness_ms,
        checked.timing == "all",
        () if checked.timing == "all" else checked.timing,
        checked.retention_ms,
        checked.idle_timeout_ms,
        checked.max_ahead_ms,
        checked.absorb_into,
        checked.slice_mb,
        publisher,
        *(begin or (0, (), ())),
        mapping=None if checked.mapping is None else json.dumps(checked.mapping, sort_keys=True),
        graph_history=checked.graph_history,
    )
