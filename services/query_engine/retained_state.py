"""The state that an engine's replica retains: slices, append logs and history that a query of the cluster can still
read.

The retention floor can move whenever an engine of the cluster commits a bucket's progress (ADR 28).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.replication.history import INSERTIONS
from penstock.replication.retention import Commitments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.replica import EngineReplica
    from penstock.replication.sequencer import Step
    from penstock.wire import GroupProgress


class RetainedState:
    """Applies the cluster's retention floor to one engine's replica."""

    def __init__(self, log: Log, topics: ClusterTopics, replica: EngineReplica) -> None:
        self._replica = replica
        self._commitments = Commitments(log, topics)

    def close(self) -> None:
        """Close the reader of the progress topic."""
        self._commitments.close()

    def ready(self, step: Step) -> bool:
        """Return whether a step can be applied (`Commitments.ready`)."""
        return self._commitments.ready(self._replica, step)

    def learn(self, own: Iterable[int]) -> bool:
        """Read the progress that other engines have committed. Returns whether another engine had committed progress.

        `own`: numbers of this engine's buckets. `learn` skips the progress of these buckets, because `record` adds this
        progress.
        """
        learnt = self._commitments.learn(own)
        if learnt:
            self.apply_floor()
        return learnt

    def record(self, number: int, committed: Mapping[int, GroupProgress], step: int) -> None:
        """Record the progress that this engine has read or committed for a bucket."""
        self._commitments.record(number, committed, step)
        self.apply_floor()

    def release(self, number: int) -> None:
        """Apply the last progress of a bucket that this engine has released. `learn` has read and skipped this
        progress. The call is needed because the bucket's new engine possibly commits nothing.
        """
        self._commitments.release(number)
        self.apply_floor()

    def advance(self) -> None:
        """Apply the floor if the stored graph is retained for queries that begin in the past. The period of retention
        moves with the streams, also if no engine commits anything.
        """
        if any(stream.declaration.graph_history for stream in self._replica.runtime.streams):
            self.apply_floor()

    def floors(self) -> dict[str, int]:
        """Return up to which time no query can use tuples of each stream (`Commitments.floors`)."""
        self._commitments.forget_stopped(self._replica)
        return self._commitments.floors(self._replica)

    def apply_floor(self) -> None:
        """Release data that no query of the cluster can read any more. Another engine can take over a query and
        continue after the query's last commit. Data that the query needs after this commit are therefore retained.
        """
        self._commitments.forget_stopped(self._replica)
        floor, runtime = self._commitments.retention_floor(self._replica), self._replica.runtime
        for stream in runtime.streams:
            stream.retained_from = floor.retained.get(stream.iri)
            stream.evaluated_from = floor.evaluated.get(stream.iri)
        runtime.core.store.release(INSERTIONS, floor.insertions)
        for track in self._replica.history.prune(floor.step):
            runtime.core.store.release(track.number, track.batch(track.closed[-1]))
