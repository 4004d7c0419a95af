"""`penstock dictionary|adaptor|dispatcher|coordinator|query-engine`: one service each, until it is told to stop.

Settings come as options or from the environment. A service that another instance has fenced ends with exit code 1:
whoever runs it starts it again.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import time
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from penstock.log import TransientError
from penstock.log.clock import SystemClock
from penstock.log.topics import TopicNames

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from penstock.cluster.topics import ClusterTopics
    from penstock.log.kafka import KafkaLog

_PAUSE_S = 0.2  # after a transient error
_IDLE_S = 0.02
_POLL_S = 0.05
_log = logging.getLogger("penstock.services")

Bootstrap = Annotated[str, typer.Option(envvar="PENSTOCK_BOOTSTRAP_SERVERS", help="Kafka brokers.")]
Prefix = Annotated[str, typer.Option(envvar="PENSTOCK_PREFIX", help="Of all topics of this cluster.")]
Shards = Annotated[int, typer.Option(envvar="PENSTOCK_SHARDS", help="Partitions of the shards topic; fixed for ever.")]
Buckets = Annotated[int, typer.Option(envvar="PENSTOCK_BUCKETS", help="Shares of standing queries; fixed for ever.")]
Instance = Annotated[str, typer.Option(envvar="PENSTOCK_INSTANCE", help="Name of this process among its service's.")]
Dictionaries = Annotated[str, typer.Option(envvar="PENSTOCK_DICTIONARIES", help="grpc://host:port of each, by comma.")]
Listen = Annotated[str, typer.Option(envvar="PENSTOCK_LISTEN", help="host:port to answer on; port 0 = any.")]
DataDir = Annotated[Path | None, typer.Option(envvar="PENSTOCK_DATA_DIR", help="For checkpoints; none = none.")]
CheckpointS = Annotated[float, typer.Option(envvar="PENSTOCK_CHECKPOINT_S", help="Seconds between checkpoints.")]


class Service(Protocol):
    """What a process runs."""

    def step(self, timeout_s: float = 0.0) -> bool:
        """Do what there is to do now; False where that was nothing."""

    def close(self) -> None:
        """Let go."""


def serve(service: Service, *, lock: Lock | None = None, after: Callable[[], None] | None = None) -> None:
    """Step until SIGTERM or SIGINT. Transient errors are met by a pause; any other ends the process."""
    stop = Event()

    def told(_: int, __: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, told)
    guard = lock or Lock()
    try:
        while not stop.is_set():
            try:
                with guard:
                    busy = service.step(_POLL_S if lock is None else 0.0)
            except TransientError as error:
                _log.warning("%s", error)
                stop.wait(_PAUSE_S)
                continue
            if after is not None:
                after()
            if not busy:
                stop.wait(_IDLE_S)
    finally:
        service.close()


def _cluster(bootstrap: str, prefix: str, shards: int, buckets: int) -> tuple[KafkaLog, ClusterTopics]:
    from penstock.cluster.topics import ClusterTopics  # noqa: PLC0415 - the cluster extra
    from penstock.log.kafka import KafkaLog  # noqa: PLC0415

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    log, topics = KafkaLog(bootstrap), ClusterTopics(TopicNames(prefix), shards, buckets)
    for attempt in range(5):
        try:
            log.create(topics.all())
            break
        except TransientError:
            if attempt == 4:
                raise
            time.sleep(_PAUSE_S)
    return log, topics


def dictionary(
    bootstrap_servers: Bootstrap,
    listen: Listen = "127.0.0.1:0",
    prefix: Prefix = "penstock",
    shards: Shards = 4,
    buckets: Buckets = 8,
    instance: Instance = "dictionary-0",
) -> None:
    """Run a dictionary."""
    from penstock.cluster.dictionary_node import DictionaryNode  # noqa: PLC0415

    log, topics = _cluster(bootstrap_servers, prefix, shards, buckets)
    serve(DictionaryNode(log, topics, instance, f"grpc://{listen}", SystemClock()))


def coordinator(
    bootstrap_servers: Bootstrap,
    dictionaries: Dictionaries,
    listen: Listen = "127.0.0.1:7878",
    prefix: Prefix = "penstock",
    shards: Shards = 4,
    buckets: Buckets = 8,
    instance: Instance = "coordinator-0",
) -> None:
    """Run a coordinator."""
    from penstock.cluster.coordinator import Coordinator  # noqa: PLC0415
    from penstock.cluster.rpc import FlightTerms  # noqa: PLC0415
    from penstock.http.coordinator import application  # noqa: PLC0415
    from penstock.http.server import HttpServer  # noqa: PLC0415

    log, topics = _cluster(bootstrap_servers, prefix, shards, buckets)
    made, lock = Coordinator(log, topics, instance, FlightTerms(dictionaries.split(",")), SystemClock()), Lock()
    host, _, port = listen.rpartition(":")
    server = HttpServer(application(made, lock), host, int(port))
    try:
        serve(made, lock=lock)
    finally:
        server.close()


def query_engine(
    bootstrap_servers: Bootstrap,
    dictionaries: Dictionaries,
    listen: Listen = "127.0.0.1:0",
    prefix: Prefix = "penstock",
    shards: Shards = 4,
    buckets: Buckets = 8,
    instance: Instance = "engine-0",
    data_dir: DataDir = None,
    checkpoint_s: CheckpointS = 30.0,
) -> None:
    """Run a query engine."""
    from penstock.cluster.checkpoint import ReplicaFactory  # noqa: PLC0415
    from penstock.cluster.query_engine import QueryEngine  # noqa: PLC0415
    from penstock.cluster.rpc import FlightTerms  # noqa: PLC0415
    from penstock.engine.directory import DataDirectory, WorkingDirectory  # noqa: PLC0415
    from penstock.engine.limits import Limits  # noqa: PLC0415
    from penstock.http.server import HttpServer  # noqa: PLC0415
    from penstock.http.sparql import application  # noqa: PLC0415

    log, topics = _cluster(bootstrap_servers, prefix, shards, buckets)
    clock, working = SystemClock(), WorkingDirectory()
    directory = None if data_dir is None else DataDirectory(data_dir, read_only=False)
    terms, rng = FlightTerms(dictionaries.split(",")), random.Random(os.getpid())  # noqa: S311 - RAND and UUID
    factory = ReplicaFactory(working, directory, terms, topics.shards, Limits(), clock.now_ms, rng)
    replica, positions = factory.make()
    engine = QueryEngine(log, topics, instance, replica, positions, clock)
    host, _, port = listen.rpartition(":")
    server = HttpServer(application(engine), host, int(port))
    due = time.monotonic() + checkpoint_s

    def checkpoint() -> None:
        nonlocal due
        if directory is not None and time.monotonic() >= due:
            factory.save(replica)
            due = time.monotonic() + checkpoint_s

    try:
        serve(engine, after=checkpoint)
    finally:
        server.close()
        working.close()


def adaptor(
    bootstrap_servers: Bootstrap,
    dictionaries: Dictionaries,
    prefix: Prefix = "penstock",
    shards: Shards = 4,
    buckets: Buckets = 8,
) -> None:
    """Run a plain adaptor: users' events to tuples of term ids."""
    from penstock.cluster.rpc import FlightTerms  # noqa: PLC0415
    from penstock.ingest.adaptor import Adaptor  # noqa: PLC0415
    from penstock.ingest.dispatcher import ADAPTOR_GROUP  # noqa: PLC0415

    log, topics = _cluster(bootstrap_servers, prefix, shards, buckets)
    serve(Adaptor(log, topics.names, FlightTerms(dictionaries.split(",")), ADAPTOR_GROUP))


def dispatcher(
    bootstrap_servers: Bootstrap, prefix: Prefix = "penstock", shards: Shards = 4, buckets: Buckets = 8
) -> None:
    """Run the dispatcher: event time, and closed batches to all shards."""
    from penstock.ingest.dispatcher import ADAPTOR_GROUP, Dispatcher  # noqa: PLC0415

    log, topics = _cluster(bootstrap_servers, prefix, shards, buckets)
    serve(Dispatcher(log, topics.names, topics.shards, SystemClock(), ADAPTOR_GROUP))


COMMANDS: dict[str, Callable[..., None]] = {
    "dictionary": dictionary,
    "coordinator": coordinator,
    "query-engine": query_engine,
    "adaptor": adaptor,
    "dispatcher": dispatcher,
}
