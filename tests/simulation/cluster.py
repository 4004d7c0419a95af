"""A whole cluster in one process: services on the memory log, a virtual clock, crashes, pauses, and restarts."""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cluster.checkpoint import ReplicaFactory
from penstock.cluster.coordinator import Coordinator
from penstock.cluster.dictionary import DictionaryService
from penstock.cluster.query_engine import QueryEngine
from penstock.cluster.topics import ClusterTopics
from penstock.engine.directory import DataDirectory, WorkingDirectory
from penstock.engine.limits import Limits
from penstock.errors import StorageError
from penstock.log import FencedError, MemoryLog, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from simulation.faults import Crash, SeededFaults

if TYPE_CHECKING:
    from collections.abc import Callable


class Terms:
    """The dictionary's clients: they ask whichever instance lives; a dead one is made anew from its log."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._service: DictionaryService | None = None

    def _ask(self, question: Callable[[DictionaryService], Any]) -> Any:
        try:
            if self._service is None:
                self._service = DictionaryService(self._cluster.log, self._cluster.topics, timeout_s=0.0)
            return question(self._service)
        except (Crash, FencedError, StorageError, TransientError) as error:
            self._service = None
            raise TransientError(f"the dictionary is away: {error!r}") from error

    def encode(self, terms: Any) -> Any:
        return self._ask(lambda service: service.encode(terms))

    def decode(self, ids: Any) -> Any:
        return self._ask(lambda service: service.decode(ids))

    def fail_over(self) -> None:
        """A standby opens; the instance before does not know."""
        self._service = None


class Process:
    """One process that may be dead or paused."""

    def __init__(self, name: str, start: Callable[[], Any]) -> None:
        self.name = name
        self.start = start
        self.service: Any = None
        self.until_ms = 0


class Cluster:
    def __init__(self, seed: int, *, engines: int = 2, coordinators: int = 2, engine: type = QueryEngine) -> None:
        self.rng = random.Random(seed)
        self.clock = VirtualClock(1_700_000_000_000)
        rates = self.rng.choice([(0.0, 0.0, 0.0), (0.01, 0.0, 0.0), (0.03, 0.02, 0.1), (0.004, 0.05, 0.3)])
        self.faults = SeededFaults(self.rng, *rates)
        self.log = MemoryLog(self.clock, self.faults)
        self.topics = ClusterTopics(TopicNames(), shards=self.rng.choice([1, 2, 3]), buckets=self.rng.choice([1, 2, 4]))
        self.log.create(self.topics.all())
        self.terms = Terms(self)
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-simulation-"))
        self._engine = engine
        self._working: list[WorkingDirectory] = []
        self.processes = [Process(f"engine-{i}", self._starter(i)) for i in range(engines)]
        self.coordinators = [
            Process(f"coordinator-{i}", lambda i=i: Coordinator(self.log, self.topics, f"c{i}", self.terms, self.clock))
            for i in range(coordinators)
        ]
        self.everybody = [*self.coordinators, *self.processes]
        self.restarts = self.moves = 0

    def _starter(self, i: int) -> Callable[[], QueryEngine]:
        keeps = self.rng.random() < 0.7

        def start() -> QueryEngine:
            working = WorkingDirectory()
            self._working.append(working)
            directory = DataDirectory(self.folder / f"engine-{i}", read_only=False) if keeps else None
            rng = random.Random(i)
            factory = ReplicaFactory(
                working, directory, self.terms, self.topics.shards, Limits(), self.clock.now_ms, rng
            )
            replica, positions = factory.make()
            engine = self._engine(self.log, self.topics, f"e{i}", replica, positions, self.clock)
            engine.factory, engine.directory, engine.working = factory, directory, working
            return engine

        return start

    # ---- time
    def tick(self) -> None:
        """One process does one step; time passes; now and then something happens to somebody."""
        self.clock.advance(self.rng.choice([0, 1, 10, 60]))
        process = self.rng.choice(self.everybody)
        self._step(process)
        if not self.faults.calm:
            self._trouble()

    def _step(self, process: Process) -> bool:
        now_ms = self.clock.now_ms()
        if now_ms < process.until_ms:
            return False
        try:
            if process.service is None:
                process.service = process.start()
                self.restarts += 1
            return bool(process.service.step())
        except Crash:
            self._kill(process)
        except TransientError:
            self._kill(process)  # at the start: it comes again
        return False

    def _kill(self, process: Process) -> None:
        service, process.service = process.service, None
        process.until_ms = self.clock.now_ms() + self.rng.choice([0, 50, 1000, 6000])
        if isinstance(service, Coordinator):
            service._election.close()  # the group notices that it is gone
        if service is not None and getattr(service, "directory", None) is not None:
            service.directory.close(clean=False)
            service.working.close()

    def _trouble(self) -> None:
        rng = self.rng
        if rng.random() < 0.01:
            self._kill(rng.choice(self.everybody))
        if rng.random() < 0.01:
            rng.choice(self.everybody).until_ms = self.clock.now_ms() + rng.choice([100, 4000, 9000])
        if rng.random() < 0.02:
            self.clock.advance(rng.choice([500, 4000]))
        if rng.random() < 0.01:
            self.terms.fail_over()
        if rng.random() < 0.05:
            self._checkpoint(rng.choice(self.processes))
        if rng.random() < 0.02:
            self._split()
        if rng.random() < 0.02:
            self.log.compact(rng.choice([self.topics.progress, self.topics.names.control]))

    def _checkpoint(self, process: Process) -> None:
        if process.service is not None:
            process.service.factory.save(process.service.replica)

    def _split(self) -> None:
        """The group takes the active coordinator for dead; it does not know, and comes back later as it was."""
        process = self.rng.choice(self.coordinators)
        service = process.service
        if service is not None and service.active:
            stale = service._active
            self._step(process)
            service._election.close()
            service._election._reader = _Believing(service._election._partition)
            service._active = stale
            process.until_ms = self.clock.now_ms() + self.rng.choice([0, 4000])

    # ---- what users do
    def command(self, verb: Callable[[Coordinator], Any]) -> Any:
        """Ask the active coordinator, again and again: a client retries, and verbs are idempotent."""
        for _ in range(20_000):
            active = [c.service for c in self.coordinators if c.service is not None and c.service.active]
            for service in active:
                try:
                    return verb(service)
                except (TransientError, FencedError):
                    pass
                except Crash:
                    self._kill(next(c for c in self.coordinators if c.service is service))
                except Exception as error:
                    if type(error).__name__ != "NotActiveError":
                        raise
            self.tick()
        raise AssertionError("no coordinator answered")

    def patiently(self, act: Callable[[], Any]) -> Any:
        """Do something that must happen once, as a producer with retries does: it is atomic."""
        for _ in range(1_000):
            calm, self.faults.calm = self.faults.calm, True
            try:
                return act()
            except TransientError:
                self.clock.advance(100)  # the dictionary reads its log
            finally:
                self.faults.calm = calm
        raise AssertionError("the dictionary does not answer")

    def rest(self) -> None:
        """End all trouble and wait until everything is done."""
        self.faults.calm = True
        self.clock.advance(20_000)
        quiet = 0
        for _ in range(20_000):
            busy = False
            self.clock.advance(20)
            for process in self.everybody:
                busy |= self._step(process)
            quiet = 0 if busy else quiet + 1
            if quiet > 250 and all(p.service is not None and p.service.caught_up() for p in self.processes):
                return
        raise AssertionError("the cluster does not come to rest")

    def close(self) -> None:
        for process in self.everybody:
            if process.service is not None:
                self._kill(process)
        for working in self._working:
            working.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class _Believing:
    """The group membership of a coordinator that was cut off: it goes on believing that it leads, for some steps."""

    def __init__(self, partition: Any) -> None:
        self._partition = partition

    def poll(self, _: int, __: float = 0.0) -> list[Any]:
        return []

    def assigned(self) -> frozenset[Any]:
        return frozenset([self._partition])

    def close(self) -> None:
        pass
