"""A whole cluster in one process: services on the memory log, a virtual clock, crashes, pauses, and restarts."""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.limits import MAX_CATCH_UP, Limits
from penstock.errors import StorageError
from penstock.log import FencedError, Partition, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.mapping.encodings.schema_registration import SchemaRegistration
from penstock.replication.cluster_topics import ClusterTopics
from penstock.replication.election import Election
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.coordinator.active_state import Forgetting
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.known_terms import KnownTerms
from penstock.services.dictionary.term_archive import TermArchive
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory
from simulation.faults import RATES, Crash, SeededFaults
from simulation.parsed import parsing_once
from simulation.stores import SimulatedLinks, SimulatedStore, store_starter
from simulation.tape import TapedLog
from support.avro_rows import RegistryInMemory, at_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from penstock.wire import QueryRegistration

_MEMORY = Path("/dev/shm")
_LEAVE_MS = 5_000  # how long a process that ends hands over what it serves
_QUIET_ROUNDS = 60  # of 100 ms: longer than a process may be silent before it is taken for dead


class CountingArchive(TermArchive):
    """An archive that counts the terms that were read from it."""

    read = 0

    def decode(self, ids: Any) -> Any:
        self.read += len(ids)
        return super().decode(ids)


class Terms:
    """The dictionary's clients: they ask whichever instance lives; a dead one is made anew from its log.

    With `in_memory`, two instances take turns, each with an archive of terms (ADR 104) and at most so many terms in
    memory.
    """

    def __init__(self, cluster: Cluster, in_memory: int, archive_class: type[CountingArchive]) -> None:
        self._cluster = cluster
        self._archive_class = archive_class
        self._in_memory = in_memory
        self._archive: CountingArchive | None = None
        self._service: DictionaryService | None = None
        self.busy = False
        self.opened = 0
        self.read = 0  # terms that only an archive contained
        self.removed = 0  # terms that nobody uses any more

    def _open(self) -> DictionaryService:
        log, topics = self._cluster.log, self._cluster.topics
        if not self._in_memory:
            return DictionaryService(log, topics, timeout_s=0.0)
        self.close()
        self.opened += 1
        folder = self._cluster.folder / f"dictionary-{self.opened % 2}"
        archive = self._archive = self._archive_class(folder, topics.names.dictionary)
        known = KnownTerms(log, topics.names, archive=archive, most=self._in_memory)
        return DictionaryService(log, topics, timeout_s=0.0, known=known)

    @property
    def archived(self) -> int:
        """The terms that were read from archives."""
        return self.read + (0 if self._archive is None else self._archive.read)

    def close(self) -> None:
        if self._archive is not None:
            self._archive.close()
            self.read += self._archive.read

    def _ask(self, question: Callable[[DictionaryService], Any]) -> Any:
        self.busy = True  # it answers one request at a time
        try:
            if self._service is None:
                self._service = self._open()
            return question(self._service)
        except (Crash, FencedError, StorageError, TransientError) as error:
            self._service = None
            raise TransientError(f"the dictionary is unavailable: {error!r}") from error
        finally:
            self.busy = False

    def encode(self, terms: Any) -> Any:
        return self._ask(lambda service: service.encode(terms))

    def find(self, terms: Any) -> Any:
        return self._ask(lambda service: service.find(terms))

    def decode(self, ids: Any) -> Any:
        return self._ask(lambda service: service.decode(ids))

    def decode_marked(self, ids: Any) -> Any:
        return self._ask(lambda service: service.decode_marked(ids))

    def encode_transient(self, terms: Any, generation: int) -> Any:
        return self._ask(lambda service: service.encode_transient(terms, generation))

    def forget(self, generation: int) -> int:
        removed = int(self._ask(lambda service: service.forget(generation)))
        self.removed += removed
        return removed

    def fail_over(self) -> None:
        """A standby opens; the instance before does not know."""
        if not self.busy:
            self._service = None


class Process:
    """One process that may be dead or paused. One without `start` is not started again."""

    def __init__(self, name: str, start: Callable[[], Any] | None, service: Any = None) -> None:
        self.name = name
        self.start = start
        self.service = service
        self.until_ms = 0
        self.leave_by_ms: int | None = None

    @property
    def leaving(self) -> bool:
        """Whether it was asked to end."""
        return self.leave_by_ms is not None

    @property
    def membership(self) -> Any:
        """What its consumer group knows of it, where it is in one."""
        if isinstance(self.service, Coordinator):
            return self.service._election._reader
        return self.service._reader if isinstance(self.service, Adaptor) else None


class Cluster:
    def __init__(
        self,
        seed: int,
        *,
        discards: bool = False,
        stores: bool = False,
        forking: bool = False,
        leaving: bool = False,
        archives: bool = False,
        forgets: bool = False,
        max_catch_up: int | None = None,
        engine: type = QueryEngine,
        adaptor: type = Adaptor,
        dispatcher: type = Dispatcher,
        archive: type[CountingArchive] = CountingArchive,
    ) -> None:
        self.rng = rng = random.Random(seed)
        self.limits = Limits()
        self.max_catch_up = MAX_CATCH_UP if max_catch_up is None else max_catch_up
        self.discard_after_ms = random.Random(~seed).choice([0, 0, 300]) if discards else None
        self.clock = VirtualClock(1_700_000_000_000)
        rates = rng.choice(RATES)
        if forgets:
            rates = rates._replace(crash=rates.crash / 10, transient=rates.transient / 4)
        self.faults = SeededFaults(rng, rates)
        self.faults.meanwhile = self.meanwhile
        self.log = TapedLog(self.clock, self.faults)
        names = TopicNames()
        self.topics = ClusterTopics(names, shards=rng.choice([1, 2, 3]), buckets=rng.choice([1, 2, 4]))
        self.log.create(self.topics.all())
        self.log.taped = frozenset([names.shards, names.dispatcher])
        in_memory = random.Random(f"archives {seed}").choice([1, 4, 16]) if archives or forgets else 0
        self.forget_after_ms = random.Random(f"forgets {seed}").choice([50, 50, 200, 800]) if forgets else 0
        self._fault_share = random.Random(f"trouble {seed}").choice([0.02, 0.1, 0.5])  # a restart delays removals
        self.terms = Terms(self, in_memory, archive)
        self.registry = RegistryInMemory()
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self._engine, self._adaptor, self._dispatcher = engine, adaptor, dispatcher
        self._parsing = parsing_once()
        self._running: list[Process] = []
        self._gone: list[tuple[int, Any]] = []  # memberships of the dead, until when their groups count on them
        self.engines = [Process(f"engine-{i}", self._engine_starter(i)) for i in range(2)]
        self.coordinators = [Process(f"coordinator-{i}", self._coordinator_starter(i)) for i in range(2)]
        self.adaptors = [Process(f"adaptor-{i}", self._start_adaptor) for i in range(rng.choice([1, 2]))]
        self.dispatchers = [Process("dispatcher", self._start_dispatcher)]
        self.stores = [Process(f"store-{i}", store_starter(self, i)) for i in range(2)] if stores else []
        self.everybody = [*self.coordinators, *self.engines, *self.adaptors, *self.dispatchers, *self.stores]
        self._dead_stores: list[Any] = []  # whose regions engines may still read
        self.restarts = 0
        self._leaves = random.Random(f"leaves {seed}") if leaving else None
        self._work, self._worked = random.Random(f"work {seed}"), 0
        self.left = 0  # processes that ended in order
        self.forking = forking
        self.forks = 0  # parts of forks that stores have answered

    # ---- processes
    def _start_adaptor(self) -> Adaptor:
        transient = {"transient": self.terms} if self.forget_after_ms else {}
        group = self.topics.names.adaptor_group
        return self._adaptor(self.log, self.topics.names, self.terms, group, opening_s=0.0, **transient)

    def _start_dispatcher(self) -> Dispatcher:
        names, shards = self.topics.names, self.topics.shards
        return self._dispatcher(self.log, names, shards, self.clock, self.topics.names.adaptor_group, opening_s=0.0)

    def _coordinator_starter(self, i: int) -> Callable[[], Coordinator]:
        return lambda: Coordinator(
            self.log,
            self.topics,
            f"c{i}",
            self.terms,
            self.clock,
            self.discard_after_ms,
            self.max_catch_up,
            settle_ms=self._work.choice([0, 2_000, 30_000]),
            schemas=SchemaRegistration(self.registry, at_once),
            forgetting=Forgetting(self.terms, self.forget_after_ms) if self.forget_after_ms else None,
        )

    def _engine_starter(self, i: int) -> Callable[[], QueryEngine]:
        keeps = self.rng.random() < 0.7

        def start() -> QueryEngine:
            directory = DataDirectory(self.folder / f"engine-{i}", read_only=False) if keeps else None
            rng = random.Random(i)
            links = SimulatedLinks(self, f"e{i}") if self.stores else None
            factory = ReplicaFactory(
                directory, self.terms, self.topics.shards, self.limits, self.clock.now_ms, rng, links, patience_s=0.0
            )
            reports = bool(self.forget_after_ms)
            engine = self._engine(
                self.log, self.topics, f"e{i}", factory, self.clock, timer=self._timer, reports_floors=reports
            )
            engine.meter.period_ms = self._work.choice([200, 1_000, 10_000])
            engine.factory, engine.directory = factory, directory
            return engine

        return start

    # ---- time
    def _timer(self) -> int:
        """The time in ns by which engines measure work: it does not depend on this machine."""
        self._worked += self._work.choice([0, 1_000_000, 50_000_000])
        return self._worked

    def tick(self) -> None:
        """One process does one step; time passes; now and then something happens to somebody."""
        self.clock.advance(self.rng.choice([0, 1, 10, 60]))
        self._step(self.rng.choice(self.everybody))
        if not self.faults.calm:
            if not self.forget_after_ms or self.rng.random() < self._fault_share:
                self._last_error()
            if self._leaves is not None:
                self._leave()

    def meanwhile(self) -> None:
        """What goes on while the process that runs now is held up between two effects."""
        if self.terms.busy or len(self._running) > 1:
            return
        held = self._running[-1] if self._running else None
        if held is not None and held.membership is not None and self.rng.random() < 0.3:
            held.membership.expel()
        for _ in range(self.rng.choice([1, 4, 15])):
            self.clock.advance(self.rng.choice([1, 20, 500]))
            self._step(self.rng.choice(self.everybody))

    def _step(self, process: Process) -> bool:
        self._bury()
        if process in self._running or self.clock.now_ms() < process.until_ms:
            return False
        self._running.append(process)
        try:
            if process.service is None:
                assert process.start is not None
                process.service = process.start()
                self.restarts += 1
            if isinstance(process.service, QueryEngine) and process.service.graph is not None:
                process.service.graph.links.keep(process.service.graph)
            with self._generations_held(process.service):
                return bool(process.service.step()) | self._end_in_order(process)
        except (Crash, FencedError):
            self._kill(process)
        except TransientError:
            process.until_ms = self.clock.now_ms() + 50  # the loop around a service tries again
        finally:
            self._running.remove(process)
        return False

    @contextmanager
    def _generations_held(self, service: Any) -> Iterator[None]:
        """Open no generation while the cluster comes to rest."""
        active = service._active if isinstance(service, Coordinator) and self.faults.calm else None
        if active is None:
            yield
            return
        generations, active.generations = active.generations, None
        try:
            yield
        finally:
            active.generations = generations

    def _leave(self) -> None:
        """An engine or a store is asked to end."""
        assert self._leaves is not None
        if self._leaves.random() < 0.01:
            process = self._leaves.choice([*self.engines, *self.stores])
            if process.service is not None and not process.leaving and process not in self._running:
                self._running.append(process)
                try:
                    process.service.leave()
                    process.leave_by_ms = self.clock.now_ms() + _LEAVE_MS
                except (Crash, FencedError):
                    self._kill(process)
                except TransientError:
                    process.leave_by_ms = self.clock.now_ms() + _LEAVE_MS
                finally:
                    self._running.remove(process)

    def _end_in_order(self, process: Process) -> bool:
        """End a process that leaves, where others serve what it served or its time is over; whether it leaves."""
        service, by_ms = process.service, process.leave_by_ms
        if by_ms is None or (not service.left and self.clock.now_ms() < by_ms):
            return by_ms is not None
        service.close()
        if getattr(service, "directory", None) is not None:
            service.directory.close(clean=True)
        process.service, process.leave_by_ms = None, None
        self.left += 1
        return True

    def _bury(self) -> None:
        """Let groups notice who is dead."""
        now_ms = self.clock.now_ms()
        for until_ms, membership in self._gone:
            if until_ms <= now_ms:
                membership.close()
        self._gone = [each for each in self._gone if each[0] > now_ms]

    def _kill(self, process: Process) -> None:
        now_ms, membership = self.clock.now_ms(), process.membership
        service, process.service, process.leave_by_ms = process.service, None, None
        process.until_ms = now_ms + self.rng.choice([0, 50, 1000, 6000])
        if membership is not None:
            self._gone.append((now_ms + self.rng.choice([0, 0, 500, 6000]), membership))
        if service is not None and getattr(service, "directory", None) is not None:
            service.directory.close(clean=False)
        if isinstance(service, SimulatedStore):
            service.end()
            self._dead_stores.append(service)
        if process.start is None:
            self.everybody.remove(process)

    def _last_error(self) -> None:
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
            self._checkpoint(rng.choice([*self.engines, *self.stores]))
        if rng.random() < 0.02:
            self._split()
        if rng.random() < 0.01:
            self._replace(rng.choice([*self.adaptors, *self.dispatchers]))
        if rng.random() < 0.02:
            names = self.topics.names
            topic = rng.choice([self.topics.progress, names.control, names.dispatcher])
            if topic in self.log.topics():
                self.log.compact(topic)

    def _checkpoint(self, process: Process) -> None:
        if isinstance(process.service, SimulatedStore):
            process.service.checkpoint()
        elif process.service is not None:
            process.service.factory.save(process.service.replica)

    def _join(self) -> Any:
        return Election(self.log, self.topics, "coordinator")._reader

    def _replace(self, process: Process) -> None:
        """A second one is started while the first still runs, and thinks itself alone."""
        service = process.service
        if service is None:
            return
        if process.membership is not None:
            process.membership.expel()
        self.everybody.append(Process(f"former {process.name}", None, service))
        process.service = None

    def _split(self) -> None:
        """The group takes the active coordinator for dead; it does not know, and comes back later as it was."""
        process = self.rng.choice(self.coordinators)
        service = process.service
        if service is not None and service.active:
            stale = service._active
            self._step(process)
            if process.service is not service or service._active is not stale:
                return  # it has ended, or has restored its state: there is no stale one
            service._election.close()
            until_ms = self.clock.now_ms() + self.rng.choice([2000, 20_000])
            service._election._reader = _Believing(service._election, self._join, self.clock, until_ms)
            service._active = stale
            process.until_ms = self.clock.now_ms() + self.rng.choice([0, 4000])

    # ---- what users do
    def command(self, demand: Any, verb: Callable[[Coordinator], Any]) -> Any:
        """Ask the active coordinator, again and again: a client retries, and verbs are idempotent."""
        for _ in range(20_000):
            for process in self.coordinators:
                if process.service is not None and process.service.active:
                    self._running.append(process)
                    self.log.demand = demand
                    try:
                        return verb(process.service)
                    except (TransientError, FencedError):
                        pass
                    except Crash:
                        self._kill(process)
                    except Exception as error:
                        if type(error).__name__ not in ("NotActiveError", "NotYetError"):
                            raise
                    finally:
                        self._running.remove(process)
                        self.log.demand = None
            self.tick()
        raise AssertionError("no coordinator answered")

    def undecided(self, standing: Iterable[QueryRegistration]) -> bool:
        """Whether a standing query that reads a derived stream beside others may still wait for the first progress of
        any: in an engine that has not applied its registration, too.
        """
        records = list(standing)
        published = {record.publishes for record in records}
        readers = [r for r in records if len(r.streams) > 1 and published.intersection(r.streams)]
        replicas = [process.service.replica for process in self.engines if process.service is not None]
        known = [replica.registrations.get(record.number) for replica in replicas for record in readers]
        return any(each is None or each.point is None for each in known) or len(replicas) < len(self.engines)

    # ---- the end
    def rest(self) -> None:
        """End all trouble and wait until everything is done."""
        self.faults.calm = True
        self.clock.advance(20_000)
        quiet = 0
        for _ in range(20_000):
            busy = False
            self.clock.advance(100)
            for process in list(self.everybody):
                busy |= self._step(process)
            quiet = 0 if busy else quiet + 1
            if quiet > _QUIET_ROUNDS and self._drained():
                return
        raise AssertionError("the cluster does not come to rest")

    def _drained(self) -> bool:
        names = self.topics.names
        prefix = names.events("").rpartition(".")[0]
        events = [Partition(t, i) for t, n in self.log.topics().items() if t.startswith(prefix) for i in range(n)]
        taken = self.log.committed(self.topics.names.adaptor_group, events)
        spans = self.log.spans(events)
        dispatcher = self.dispatchers[0].service
        return (
            all(taken.get(name, 0) >= spans[name].end for name in events)
            and dispatcher is not None
            and not any(dispatcher.lag().values())
            and all(p.service is not None and p.service.caught_up() for p in [*self.engines, *self.stores])
        )

    def close(self) -> None:
        for process in list(self.everybody):
            if process.service is not None:
                self._kill(process)
        self._dead_stores.clear()
        self.terms.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._parsing.close()


class _Believing:
    """The group membership of a coordinator that was cut off: it goes on believing that it leads, for some steps."""

    def __init__(self, election: Election, join: Callable[[], Any], clock: VirtualClock, until_ms: int) -> None:
        self._election, self._join = election, join
        self._clock, self._until_ms = clock, until_ms

    def poll(self, _: int, __: float = 0.0) -> list[Any]:
        if self._clock.now_ms() >= self._until_ms:  # the group's word has come through: it joins anew
            self._election._reader = self._join()
        return []

    def assigned(self) -> frozenset[Any]:
        return frozenset([self._election._partition])

    def expel(self) -> None:
        pass

    def close(self) -> None:
        pass
