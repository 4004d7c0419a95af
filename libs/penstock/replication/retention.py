"""What whoever continues the cluster's queries will look at: from the buckets' progress and the registrations.

Everybody who keeps slices or append logs keeps them for every query of the cluster, from its last commit on: an engine
that takes queries over finds them, here or in the stores (ADR 28).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.log import START, Partition
from penstock.quarantine import InternalRecords
from penstock.replication.history import NOTHING
from penstock.replication.progress_log import ProgressView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.replica import Replica, W
    from penstock.replication.sequencer import Step
    from penstock.wire import GroupProgress

_POLL = 256


@dataclass(frozen=True, slots=True)
class Needs:
    """By stream: tuples later than `kept` are still looked at (absent: none are), and no instant before `asked` is
    evaluated. `step` and `insertions`: the oldest graph that is still looked at.
    """

    step: int
    insertions: int
    kept: dict[str, int]
    asked: dict[str, int]


class Commitments:
    """What every bucket has committed, as this process knows it."""

    def __init__(self, log: Log, topics: ClusterTopics) -> None:
        self._buckets = topics.buckets
        self._reader = log.reader({Partition(topics.progress, i): START for i in range(topics.buckets)})
        self._committed: dict[int, dict[int, GroupProgress]] = {}
        self._steps: dict[int, int] = {}  # of the last commits
        records = InternalRecords(log, topics.names)
        self._views = {i: ProgressView(records) for i in range(topics.buckets)}
        self._passed: set[int] = set()  # own buckets with a transaction read: another engine may have them by now

    def close(self) -> None:
        """Let go."""
        self._reader.close()

    def learn(self, own: Iterable[int] = ()) -> bool:
        """Take in what others have committed; `own` buckets are noted by whoever has them. True where that is new."""
        learnt = False
        for message in self._reader.poll(_POLL):
            if not self._views[message.partition].feed(message):
                continue
            self._passed.add(message.partition)
            if message.partition not in own:
                self.let_go(message.partition)
                learnt = True
        return learnt

    def let_go(self, bucket: int) -> None:
        """Take in what was read last of a bucket that is not this process's any more: whoever has it may be done."""
        if bucket in self._passed:
            self._passed.discard(bucket)
            self.note(bucket, self._views[bucket].groups, self._views[bucket].step)

    def note(self, bucket: int, committed: Mapping[int, GroupProgress], step: int) -> None:
        """Note what a bucket has committed, and at which step."""
        self._committed[bucket] = dict(committed)
        self._steps[bucket] = step

    def forget_stopped(self, replica: Replica[W]) -> None:
        """Forget stopped queries whose bucket has committed since: nothing of theirs is left to do."""
        known = replica.registrations
        for number, registration in list(known.items()):
            stopped = registration.stopped
            if stopped is not None and stopped <= self._steps.get(registration.record.group % self._buckets, -1):
                del known[number]

    def ready(self, replica: Replica[W], step: Step) -> bool:
        """Whether a step may be applied. Progress that came before a stop was read counts, too."""
        if not replica.ready(step):
            self.forget_stopped(replica)
        return replica.ready(step)

    def needs(self, replica: Replica[W]) -> Needs:
        """Return what is still looked at."""
        history = replica.history
        kept: dict[str, int] = {}
        asked: dict[str, int] = {}
        oldest = history.step
        for registration in replica.registrations.values():
            record, point = registration.record, registration.point
            if point is None:
                continue
            progress = self._committed.get(record.group % self._buckets, {}).get(record.group)
            last = point if progress is None or progress.last_ms is None else max(point, progress.last_ms)
            oldest = min(oldest, max(registration.step, history.due(record.streams, last)))
            for iri in record.streams:
                need = point if progress is None else progress.needs.get(iri, point)
                kept[iri] = min(need, kept.get(iri, need))
                asked[iri] = min(last, asked.get(iri, last))
        if kept:
            for iri in replica.declared:
                then = history.tracks[iri].at(oldest)
                then = NOTHING if then is None else then
                asked[iri] = min(then, asked.get(iri, then))
        return Needs(oldest, history.tracks[""].at(oldest) or 0, kept, asked)
