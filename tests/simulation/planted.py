"""Services with a bug on purpose: they commit how far they have come before the effect of that."""

from __future__ import annotations

import numpy as np

from penstock.event_time.watermark import NEVER
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.coordinator.predicate_demand import KnownVersions
from penstock.services.dispatcher.dispatcher import Dispatcher, _key
from penstock.services.query_engine.query_engine import QueryEngine
from simulation.cluster import CountingArchive
from simulation.stores import SimulatedForking


class ForgetfulEngine(QueryEngine):
    """Two transactions in place of one: progress, then results."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        commit = self.commits.commit

        def in_two() -> None:
            held = {bucket.number: bucket.pending for bucket in self.buckets.values() if bucket.pending}
            for bucket in self.buckets.values():
                bucket.pending = []
            commit()
            for number, records in held.items():
                if number in self.buckets:
                    self.buckets[number].writer.commit(records)

        self.commits.commit = in_two


class HastyEngine(QueryEngine):
    """It commits what earlier steps gave while a pass waits for a store."""

    def step(self, timeout_s: float = 0.0) -> bool:
        self.commits.commit()
        return super().step(timeout_s)


class EarlyEngine(QueryEngine):
    """It reads a bucket's progress, and opens the bucket a step later: the engine before has committed more by then."""

    def __init__(self, log, *args, **more) -> None:
        super().__init__(log, *args, **more)
        early, assignment, open_bucket = set(), self.assignment, self.assignment.open

        def read_then_open(number: int) -> None:
            opening = assignment.opening[number]
            if number not in early:
                early.add(number)
                opening.reader.pause([opening.place])
                return
            early.discard(number)
            open_bucket(number)
            opening.end = 0

        assignment.open = read_then_open


class ForgetfulAdaptor(Adaptor):
    """The group's progress, then the tuples."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        records = self.adapting.records

        def after_commit(messages):
            work, self._work = self._work, []
            self._commit()
            self._work = work
            return records(messages)

        self.adapting.records = after_commit


class ForgetfulDispatcher(Dispatcher):
    """Two transactions in place of one: its states, then the batches."""

    def _commit(self) -> None:
        states = [record for record in self._outbox if record.topic == self._names.dispatcher]
        self._outbox = [record for record in self._outbox if record.topic != self._names.dispatcher]
        if states:
            self._writer.commit(states)
        super()._commit()


class ReboundDispatcher(Dispatcher):
    """It takes in again, for a stream that is declared again, what the one before has had."""

    def _drop(self, iri, stream) -> None:
        super()._drop(iri, stream)
        del self._saved[_key(stream.declaration)]


class HastyForking(SimulatedForking):
    """A fork whose stores answered nothing."""

    def _run(self, asked, excluded, parts, seconds):
        super()._run(asked, excluded, parts, seconds)
        return [None] * len(parts)


class HastyVersions(KnownVersions):
    """A coordinator that waits for no adaptor."""

    def cut_until(self, stream, version) -> int | None:
        return NEVER


class ForgetfulArchive(CountingArchive):
    """An archive that does not find terms, so that a term that leaves the memory gets another id when it returns."""

    def find(self, terms):
        return np.zeros(len(terms), np.uint64)


class ShortSightedEngine(QueryEngine):
    """It reports that no query needs tuples of closed batches (ADR 50)."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        replica = self.replica

        def closed():
            ends = {number: replica.runtime.streams.get(iri).closed_ms for iri, number in replica.declared.items()}
            return {str(number): end for number, end in ends.items() if end is not None}

        self._retained.floors = closed


class LongMemoryAdaptor(Adaptor):
    """It uses an id of an earlier generation in a later one (ADR 50)."""

    def __init__(self, *args, **more) -> None:
        super().__init__(*args, **more)
        self.adapting._terms.begin_generation = self._set_only

    def _set_only(self, generation) -> None:
        self.adapting._terms._generation = max(self.adapting._terms._generation, generation)
