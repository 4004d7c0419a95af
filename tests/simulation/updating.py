"""Updates with patterns in a simulated cluster: an engine evaluates them, the coordinator writes their effects (ADR 76)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import ConflictError, UnavailableError
from penstock.log import Partition, TransientError
from penstock.query.parser import parse
from penstock.query.resolve import as_update
from penstock.query.supported_updates import is_data
from penstock.services.coordinator.insertion import Insertion
from property.script import Update
from simulation.faults import Crash

if TYPE_CHECKING:
    from penstock.services.coordinator.coordinator import Coordinator
    from penstock.updates.effects import Effect
    from simulation.cluster import Cluster, Process

_CONFLICTS = 0.3  # of updates: another change is stored between evaluation and commit


class Updating:
    """Executes updates as the coordinator's HTTP routes do.

    The reference executes an update where the log has its effect, so the engine that evaluates it must have applied
    everything before that: nothing else goes on between evaluation and commit, except changes that conflict.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._requests = 0
        self.evaluations = 0
        self.conflicts = 0

    def execute(self, operation: Update) -> None:
        """Execute an update, again and again until it is stored."""
        if is_data(as_update(parse(operation.text))):
            self._cluster.command(operation, lambda c: c.update(operation.text))
            return
        self._requests += 1
        name = f"update {self._requests}"
        if self._cluster.rng.random() < _CONFLICTS:
            self._conflict(operation)
        self._cluster.command(operation, lambda c: self._store(c, operation, name))

    def _store(self, coordinator: Coordinator, operation: Update, name: str) -> None:
        if coordinator.stored(name)[0] is None:
            process = self._evaluator()
            self._cluster._running.append(process)  # nobody does anything meanwhile
            try:
                coordinator.insert(Insertion.of_effect(self._evaluate(process, operation)), name)
            finally:
                self._cluster._running.remove(process)

    def _conflict(self, operation: Update) -> None:
        """Store other data between the evaluation of an update and its commit, which must then be refused."""
        effects: list[Effect] = []
        self._cluster.command(operation, lambda _: effects.append(self._evaluate(self._evaluator(), operation)))
        data = Update(f"INSERT DATA {{ <urn:x:conflict> <urn:x:number> {self._requests} }}")
        self._cluster.command(data, lambda c: c.update(data.text))
        stale = Insertion.of_effect(effects[0])

        def refused(coordinator: Coordinator) -> bool:
            try:
                coordinator.insert(stale)
            except ConflictError:
                return True
            return len(stale) == 0  # nothing to store, on any snapshot

        assert self._cluster.command(operation, refused), "a stale effect was stored"
        self.conflicts += 1

    def _evaluator(self) -> Process:
        """Return an engine that has applied the whole log. TransientError if there is none now."""
        topics, log = self._cluster.topics, self._cluster.log
        written = [log.partition(Partition(topics.names.shards, i))._offsets for i in range(topics.shards)]
        for process in self._cluster.engines:
            if process.service is None or process in self._cluster._running:
                continue
            replica = process.service.replica
            positions = replica.sequencer.positions()
            applied = all(not offsets or offsets[-1] < at for offsets, at in zip(written, positions, strict=True))
            if applied and replica.whole and self._cluster.clock.now_ms() >= process.until_ms:
                return process
        raise TransientError("no engine has applied the log")

    def _evaluate(self, process: Process, operation: Update) -> Any:
        try:
            effect = process.service.updates.evaluate(operation.text)
        except UnavailableError as error:
            raise TransientError(str(error)) from error
        except Crash:
            self._cluster._kill(process)
            raise TransientError("the engine has died") from None
        self.evaluations += 1
        return effect
