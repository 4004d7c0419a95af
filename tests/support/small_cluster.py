"""All services of a cluster in one process, on the memory log and a virtual clock, without faults, for unit tests."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Literal

from penstock.engine.limits import Limits
from penstock.log import START, MemoryLog, Partition, Record
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.remote import Server
from penstock.remote.store_links import ControlLink, StoreLinks
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory
from penstock.services.store.leases import Leases, LeaseServer
from penstock.services.store.shard_checkpoints import ShardCheckpoints
from penstock.services.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.log import Message
    from penstock.mapping.encodings.schema_registration import SchemaRegistration
    from penstock.query.planning.cost.placement import Execution

SECRET = b"a secret of sixteen bytes"


class SmallCluster:
    """A cluster of `engines` query engines and one of each other service. `run` steps all services until nothing
    changes. `reads`: the transport by which engines read the stored graph in stores; None: each engine holds the graph.
    `execution`: how engines run steps over stores. `schemas`: registers schemas of records in Avro.
    """

    def __init__(
        self,
        engines: int = 1,
        shards: int = 2,
        buckets: int = 2,
        reads: Literal["shm", "tcp"] | None = None,
        execution: Execution = "auto",
        schemas: SchemaRegistration | None = None,
    ) -> None:
        self.reads = reads
        self.execution: Execution = execution
        self.clock = VirtualClock(1_000)
        self.log = MemoryLog(self.clock)
        self.topics = ClusterTopics(TopicNames(), shards=shards, buckets=buckets)
        self.log.create(self.topics.all())
        self.terms = DictionaryService(self.log, self.topics)
        self.coordinator = Coordinator(self.log, self.topics, "c", self.terms, self.clock, schemas=schemas)
        self.adaptor = Adaptor(self.log, self.topics.names, self.terms, self.topics.names.adaptor_group)
        self.dispatcher = self.start_dispatcher()
        self.engines: dict[str, QueryEngine] = {}
        self.paused: list[object] = []  # services that `run` does not step
        self._killed: list[object] = []
        self.stores: dict[str, Store] = {}
        self._lessors: dict[str, LeaseServer] = {}
        self._writer = self.log.writer()
        for i in range(engines):
            self.start_engine(f"e{i}")
        self.run()

    def start_dispatcher(self) -> Dispatcher:
        return Dispatcher(self.log, self.topics.names, self.topics.shards, self.clock, self.topics.names.adaptor_group)

    def start_engine(self, name: str, kind: type[QueryEngine] = QueryEngine) -> QueryEngine:
        rng = random.Random(0)
        links = None if self.reads is None else self._links(name)
        limits, now_ms = Limits(), self.clock.now_ms
        factory = ReplicaFactory(None, self.terms, self.topics.shards, limits, now_ms, rng, links, patience_s=0.0)
        engine = kind(self.log, self.topics, name, factory, self.clock)
        self.engines[name] = engine
        return engine

    def start_store(self, name: str, folder: Path, *, keeps: bool = True) -> Store:
        """Start a store with its regions in `folder`; its checkpoints are in a subfolder that all stores of `folder`
        share.
        """
        checkpoints = ShardCheckpoints(folder / "checkpoints", name, self.topics.shards) if keeps else None
        server = Server("127.0.0.1", 0, SECRET, transport="tcp")
        regions, leases = folder / "regions" / name, Leases(self._seconds)
        lessor = self._lessors[name] = LeaseServer(leases, "127.0.0.1", 0, SECRET, server.port)
        log, topics, clock = self.log, self.topics, self.clock
        store = Store(log, topics, name, self.terms, clock, server, regions, checkpoints, leases, lessor.address)
        lessor.start()
        self.stores[name] = store
        return store

    def _links(self, name: str) -> StoreLinks:
        shards, execution = self.topics.shards, self.execution
        return StoreLinks(name, shards, self._reach, clock=self._seconds, secret=SECRET, execution=execution)

    def _reach(self, node: int, address: str) -> ControlLink:
        assert self.reads is not None
        return ControlLink(node, address, SECRET, self.reads, "")

    def _seconds(self) -> float:
        return self.clock.now_ms() / 1000

    def kill_store(self, name: str) -> None:
        """End a store like a killed process: it closes and saves nothing, and its locks are released."""
        store = self.stores.pop(name)
        self._lessors.pop(name).close()
        self._killed.append(store)  # kept, for a later garbage collection would remove the files of its successor
        if store._checkpoints is not None:
            store._checkpoints.close()

    def restart_coordinator(self) -> None:
        """Let another instance take over."""
        self.coordinator = Coordinator(self.log, self.topics, "c2", self.terms, self.clock)
        self.run()

    def kill(self, name: str) -> None:
        """End an engine like a killed process: it closes nothing."""
        del self.engines[name]

    def run(self, rounds: int = 40) -> None:
        for _ in range(rounds):
            self.clock.advance(200)
            for service in (
                self.coordinator,
                self.adaptor,
                self.dispatcher,
                *self.stores.values(),
                *self.engines.values(),
            ):
                if service not in self.paused:
                    service.step()

    # ---- what users do
    def push(self, name: str, time_ms: int, data: str) -> None:
        headers = (("timestamp", str(time_ms).encode()),)
        self._writer.append([Record(self.topics.names.events(name), data.encode(), headers=headers)])

    def advance(self, name: str, time_ms: int) -> None:
        beat = (("heartbeat", str(time_ms).encode()),)
        self._writer.append([Record(self.topics.names.events(name), b"", headers=beat)])

    def send(self, topic: str, key: str | None, value: str | None, /, **headers: str) -> None:
        """Produce a record as a user would with kcat."""
        given = tuple((name, text.encode()) for name, text in headers.items())
        record = Record(
            topic, None if value is None else value.encode(), None if key is None else key.encode(), headers=given
        )
        self._writer.append([record])

    def messages(self, topic: str) -> list[Message]:
        partitions = range(self.log.topics()[topic])
        return self.log.reader({Partition(topic, i): START for i in partitions}).poll(100_000)

    def results(self) -> list[dict[str, Any]]:
        found = [json.loads(message.value or b"") for message in self.messages(self.topics.names.results)]
        return sorted(found, key=lambda line: (line["query"], line["time"]))

    def close(self) -> None:
        for engine in self.engines.values():
            engine.close()
        for lessor in self._lessors.values():  # a test may have removed a lessor's store
            lessor.close()
        for store in self.stores.values():
            store.close()
        self.coordinator.close()
