"""Predicate demand: the predicates whose tuples adaptors must pass on, and the time since which all adaptors do so (ADR
45).

Only queries read the timing tuples of a stream. Adaptors can therefore discard the tuples of timing predicates that no
query reads. If a query needs further predicates, the coordinator first extends the filter. The dispatcher confirms when
adaptors apply the extended filter to all further tuples. Only then does the coordinator register the query. The
registration point is after the batches that are open at this time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.event_time.watermark import NEVER
from penstock.log import Partition
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import DISPATCHER
from penstock.query.ir import ContinuousQuery
from penstock.query.predicates import predicates_of
from penstock.wire import StreamPredicates

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.log import Log
    from penstock.log.topics import TopicNames
    from penstock.log.view import CompactedView
    from penstock.query.ir import Statement
    from penstock.wire import DispatcherState, StreamDeclaration

PredicatesRead = dict[str, frozenset[str] | None]
"""Predicates by stream. None means all predicates."""


_NEVER_MS = 1 << 62
_MOST_VERSIONS = 1_000
"""Maximum number of filter versions per stream whose times `KnownVersions` keeps."""
DEMAND_MS = 60_000
"""Time in ms for which the predicate filter includes the demand of a query that is not registered yet."""


def predicates_read(statement: Statement) -> PredicatesRead:
    """Return the predicates that a standing query reads, by stream. Empty for other statements."""
    if not isinstance(statement, ContinuousQuery):
        return {}
    predicates = predicates_of(statement)
    return {window.stream: predicates for window in statement.windows}


def timing_of(stream: StreamDeclaration, needed: frozenset[str] | None) -> frozenset[str] | None:
    """Return the timing predicates of a stream among the needed predicates (`needed`). In the argument and in the
    result, None means all predicates. Timeless predicates do not matter, because adaptors always pass on tuples with
    timeless predicates. Stores absorb these tuples.
    """
    if stream.timing_all:
        return needed
    timing = frozenset(stream.timing)
    return timing if needed is None else needed & timing


def includes(these: frozenset[str] | None, needed: frozenset[str] | None) -> bool:
    """Return whether a set of predicates includes all needed predicates. None means all predicates."""
    return these is None or (needed is not None and needed <= these)


def version_of(current: StreamPredicates | None, needed: frozenset[str] | None) -> int | None:
    """Return the version since which a filter includes all needed predicates. None if the filter lacks one of these
    predicates.

    If `current` is None, there is no filter, and adaptors pass on all tuples. If `needed` is None, the query needs all
    predicates.
    """
    if current is None:
        return 0
    if current.all_since is not None:
        return current.all_since
    since = dict(zip(current.predicates, current.since.tolist(), strict=True))
    if needed is None or not needed <= since.keys():
        return None
    return max((since[predicate] for predicate in needed), default=0)


def grown(stream: str, current: StreamPredicates, needed: frozenset[str] | None) -> StreamPredicates:
    """Return the next version of a filter, extended by the needed predicates. If `needed` is None, these are all
    predicates.
    """
    version = current.version + 1
    if needed is None:
        return StreamPredicates(stream, version, (), np.empty(0, np.int64), version, current.generation)
    since = dict(zip(current.predicates, current.since.tolist(), strict=True))
    since |= dict.fromkeys(needed - since.keys(), version)
    return _listed(stream, version, since, current.generation)


def restricted(stream: str, current: StreamPredicates | None, needed: frozenset[str] | None) -> StreamPredicates | None:
    """Return the next version of a filter, restricted to the needed predicates, or None if nothing can be removed."""
    if needed is None:
        return None
    if current is None or current.all_since is not None:
        before = 0 if current is None or current.all_since is None else current.all_since
        since = dict.fromkeys(needed, before)
    else:
        known = dict(zip(current.predicates, current.since.tolist(), strict=True))
        if known.keys() <= needed:
            return None
        since = {predicate: known[predicate] for predicate in needed & known.keys()}
    if current is None:
        return _listed(stream, 1, since, 0)
    return _listed(stream, current.version + 1, since, current.generation)


def _listed(stream: str, version: int, since: Mapping[str, int], generation: int) -> StreamPredicates:
    names = tuple(sorted(since))
    return StreamPredicates(
        stream, version, names, np.array([since[name] for name in names], np.int64), generation=generation
    )


class KnownVersions:
    """The filter versions that the dispatcher reports for each stream. The dispatcher reports two things about a
    stream. The first is the oldest version that an adaptor possibly applied to tuples that the dispatcher has not read
    yet. The second is the versions that were applied to the tuples of open batches.
    """

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._log, self._names = log, names
        self._records = InternalRecords(log, names)
        self._view: CompactedView | None = None
        self._states: dict[str, DispatcherState] = {}
        self._complete: dict[tuple[str, int], dict[int, int]] = {}

    def cut_until(self, stream: StreamDeclaration, version: int) -> int | None:
        """Return the end in ms of the last open batch with events that an older filter possibly restricted. A filter is
        older if its version is less than `version`.

        The result NEVER means that no open batch has such events. None means that records which an older filter has
        restricted can still arrive.
        """
        if version == 0:
            return NEVER
        self._refresh()
        state = self._states.get(stream.iri)
        if state is None or state.known < version:
            return None
        cut = state.cut_batches[state.cut_filter_versions < version]
        end_ms = (int(cut.max()) + 1) * stream.batch_ms if len(cut) else NEVER
        complete = self._complete.setdefault((stream.iri, stream.number), {})
        if version not in complete:
            if len(complete) >= _MOST_VERSIONS:
                del complete[min(complete)]
            closed_ms = NEVER if state.closed is None else (state.closed + 1) * stream.batch_ms
            complete[version] = max(end_ms, closed_ms)
        return end_ms

    def complete_from(self, stream: StreamDeclaration, version: int) -> int | None:
        """Return the end in ms of a batch. Filters that are older than `version` restricted no events of later batches.
        In contrast to `cut_until`, the batch can be closed.

        The result is fixed at the first call for this version, of this method or of `cut_until`, that does not return
        None. The result is the end of the last batch that was closed at this call, or the result of `cut_until` if that
        is later. NEVER and None: see `cut_until`.
        """
        end_ms = self.cut_until(stream, version)
        if end_ms is None or version == 0:
            return end_ms
        return self._complete[stream.iri, stream.number][version]

    def closed_ms(self, stream: StreamDeclaration) -> int | None:
        """Return the end in ms of the stream's last closed batch, as far as the dispatcher has reported it. None if the
        dispatcher has reported no closed batch of this declaration.
        """
        self._refresh()
        state = self._states.get(stream.iri)
        if state is None or state.number != stream.number or state.closed is None:
            return None
        return (state.closed + 1) * stream.batch_ms

    def _refresh(self) -> None:
        if self._view is None:
            if self._names.dispatcher not in self._log.topics():
                return
            self._view = self._records.view([Partition(self._names.dispatcher)], DISPATCHER)
        for message in self._view.refresh():
            if message.value is not None:
                record: DispatcherState = self._records.read(message, DISPATCHER)
                self._states[record.stream] = record

    def close(self) -> None:
        """Close the reader."""
        if self._view is not None:
            self._view.close()


class PredicatePushdown:
    """Decides when to restrict filters: when the demand for a stream has been constant for `after_ms`.

    `next_ms`: the next time at which a restriction can become due although the demand does not change.
    """

    def __init__(self, after_ms: int) -> None:
        self.next_ms = 0
        self._after_ms = after_ms
        self._since: dict[str, tuple[frozenset[str], int]] = {}
        self._demands: dict[tuple[str, frozenset[str] | None], int | None] = {}

    def due(
        self,
        streams: Iterable[StreamDeclaration],
        filters: Mapping[str, StreamPredicates],
        reads: Mapping[str, Iterable[frozenset[str] | None]],
        now_ms: int,
    ) -> list[StreamPredicates]:
        """Return the next versions of the filters to restrict. A filter is restricted if two conditions hold. The
        filter lets through more predicates than queries need. This need has not changed for `after_ms`. `reads`: for
        each stream, the sets of predicates that queries over this stream read.
        """
        found = []
        self._forget(now_ms)
        self.next_ms = min((at + DEMAND_MS for at in self._demands.values() if at is not None), default=_NEVER_MS)
        since: dict[str, tuple[frozenset[str], int]] = {}
        for stream in (each for each in streams if each.may_discard):
            sets = [*reads.get(stream.iri, ()), *(needed for iri, needed in self._demands if iri == stream.iri)]
            every = None if None in sets else frozenset().union(*(each for each in sets if each is not None))
            needed = timing_of(stream, every)
            if needed is None or (not stream.timing_all and needed.issuperset(stream.timing)):
                continue
            record = restricted(stream.iri, filters.get(stream.iri), needed)
            if record is None:
                continue
            known, since_ms = self._since.get(stream.iri, (None, now_ms))
            since[stream.iri] = needed, since_ms if known == needed else now_ms
            due_ms = since[stream.iri][1] + self._after_ms
            if now_ms >= due_ms:
                found.append(record)
            self.next_ms = min(self.next_ms, max(due_ms, now_ms))
        self._since = since
        return found

    def _forget(self, now_ms: int) -> None:
        """Remove demands of queries that were not registered within DEMAND_MS."""
        demands = {demand: now_ms if at is None else at for demand, at in self._demands.items()}
        self._demands = {demand: at for demand, at in demands.items() if now_ms - at < DEMAND_MS}

    def record(self, stream: str, needed: frozenset[str] | None) -> None:
        """Record the demand of a query that waits for adaptors. The demand counts for DEMAND_MS."""
        self._demands[stream, needed] = None
        self.next_ms = 0
