"""The connection to a Kafka cluster: client configuration, topics, offsets, and the clients that are open."""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from functools import partial
from itertools import chain, repeat
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

from penstock.log.errors import DeniedError, LogError, TransientError, UnknownTopicError
from penstock.log.kafka.denials import DENIED, denial, principal
from penstock.log.kafka.error_codes import UNKNOWN
from penstock.log.port import MAX_RECORD_BYTES, Partition, Span, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Future

    from confluent_kafka.admin import ClusterMetadata

GIVE_UP_S: Final = 300.0
_ANSWER_S: Final = 30.0  # maximum duration of a request to the brokers
_CHECK_S: Final = 2.0  # maximum duration of a check of the brokers
_RETRY_S: Final = 0.05
_QUIET_S: Final = 10.0  # minimum interval between log lines about the same kind of error
_PASSING: Final = {
    KafkaError._NOENT,  # "no leaders found": brokers that have just started
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
}
_LIMIT: Final = "max.message.bytes"
_BATCH_BYTES: Final = 2_000_000
T = TypeVar("T")
Opened = TypeVar("Opened", bound="Client")
_log = logging.getLogger("penstock.log.kafka")


class Client(Protocol):
    """A reader or writer of the cluster."""

    def close(self) -> None:
        """Close the reader or writer."""


class KafkaConnection:
    """A Kafka cluster, for the readers and writers of one log. Any thread can use this object.

    `give_up_s`: how long a transaction waits in s while no broker answers. `interrupt`: a function that is called while
    a transaction waits. If the function raises an exception, the wait ends, and the outcome of the transaction is
    unknown.
    """

    interrupt: Callable[[], None] = staticmethod(lambda: None)

    def __init__(
        self, bootstrap_servers: str, properties: Mapping[str, str] | None = None, give_up_s: float = GIVE_UP_S
    ) -> None:
        self.give_up_s = give_up_s
        self._client = {
            "log_level": 2,  # important events arrive through error_cb
            **(properties or {}),
            "bootstrap.servers": bootstrap_servers,
            "error_cb": self._on_error,
        }
        self._last_error = ""
        self._last_logged: dict[int, float] = {}
        self._admin = self._replaced = AdminClient(self._client)
        self._known: dict[str, int] = {}
        self._lock = Lock()
        self._opened: list[Client] = []
        self.small_topics: dict[str, int] = {}
        """The maximum record size in bytes of each topic in which a batch of records could exceed this size. `limits`
        updates this dict.
        """

    def _on_error(self, error: KafkaError) -> None:
        self._last_error = error.str()
        now = time.monotonic()
        if now - self._last_logged.get(error.code(), -_QUIET_S) >= _QUIET_S:  # errors repeat many times a second
            self._last_logged[error.code()] = now
            _log.warning("kafka: %s", error.str())

    def denied(self, operation: str, resource: str, answer: KafkaError | None = None) -> DeniedError:
        """Return the error for an operation that this client is not allowed to perform. `resource`: kind and name of
        the resource, as in "topic penstock.control".
        """
        return denial(principal(self._client), operation, resource, answer)

    def client(self, **settings: object) -> dict[str, Any]:
        """Return the client configuration for this cluster."""
        return {**self._client, **settings}

    # ---- topics
    def create(self, topics: Iterable[Topic]) -> None:
        """Create the topics that do not exist, and wait until these topics are usable."""
        requested, known = list(topics), self.topics()
        missing = {topic.name: _new_topic(topic) for topic in requested if topic.name not in known}
        if missing:
            for name, future in self._admin.create_topics(list(missing.values())).items():
                ask = _repeated(future, partial(self._admin.create_topics, [missing[name]]))
                self._answered(ask, KafkaError.TOPIC_ALREADY_EXISTS, ("Create", f"topic {name}"))
                self._check_visible(name)
        self._wait_for(dict.fromkeys(missing, 1))

    def grow(self, topic: str, partitions: int) -> None:
        """Increase a topic's number of partitions to `partitions`, if the topic has fewer partitions. UnknownTopicError
        if the topic does not exist.
        """
        self.check(Partition(topic, 0))
        if self.topics().get(topic, 0) >= partitions:
            return
        request = partial(self._admin.create_partitions, [NewPartitions(topic, partitions)])
        # if the partitions exist, another process created them first
        self._answered(_asking(request), KafkaError.INVALID_PARTITIONS, ("Alter", f"topic {topic}"))
        self._wait_for({topic: partitions})

    def _wait_for(self, requested: Mapping[str, int]) -> None:
        """Ask the brokers repeatedly until the topics have the given numbers of partitions. The reason is that no
        broker reports when all brokers have the new metadata.
        """
        deadline = time.monotonic() + _ANSWER_S
        while requested:
            known = self.topics()
            requested = {name: count for name, count in requested.items() if known.get(name, 0) < count}
            if requested and time.monotonic() > deadline:
                raise TransientError(f"new topics were not usable within {_ANSWER_S} s")
            time.sleep(_RETRY_S if requested else 0.0)

    def topics(self, timeout_s: float = _ANSWER_S) -> dict[str, int]:
        """Return the number of partitions of every topic."""
        try:
            metadata = self._metadata(timeout_s)
        except KafkaException as exception:
            raise TransientError(f"the brokers do not answer: {self._why(exception)}") from exception
        found = {name: len(topic.partitions) for name, topic in metadata.topics.items() if topic.error is None}
        with self._lock:
            self._known = found
        return dict(found)

    def last_error(self) -> str | None:
        """Return the reason why the brokers cannot be used now, or None."""
        try:
            self._metadata(_CHECK_S)
        except KafkaException as exception:
            return self._why(exception)
        return None

    def _metadata(self, timeout_s: float) -> ClusterMetadata:
        """Return the metadata of the cluster. After an error, the next requests use a new client: after an outage of
        the brokers, a client of librdkafka 2.16 possibly does not connect again for minutes.
        """
        admin = self._admin
        try:
            return admin.list_topics(timeout=timeout_s)
        except KafkaException:
            with self._lock:
                if self._admin is admin:
                    # other threads possibly wait for responses to the old client, so it is not closed yet
                    self._replaced, self._admin = admin, AdminClient(self._client)
            raise

    def _why(self, exception: KafkaException) -> str:
        """Return the text of an exception and of the last error event. If the exception reports only a timeout, the
        last error event often reports the cause of the timeout.
        """
        for client in (self._replaced, self._admin):
            client.poll(0)
        return " ".join(filter(None, [exception.args[0].str(), self._last_error]))

    def check(self, partition: Partition) -> None:
        """Raise UnknownTopicError if a partition does not exist. DeniedError if this client is not allowed to describe
        the topic. Queries the brokers only for partitions that this log has not seen before.
        """
        with self._lock:
            known = 0 <= partition.number < self._known.get(partition.topic, 0)
        if not known and not 0 <= partition.number < self.topics().get(partition.topic, 0):
            self._check_visible(partition.topic)
            text = f"unknown topic or partition {partition.topic}[{partition.number}]"
            raise UnknownTopicError(text, partition.topic)

    def _check_visible(self, topic: str) -> None:
        """Raise DeniedError if this client is not allowed to describe a topic. Brokers omit such a topic from the list
        of all topics.
        """
        request = partial(self._admin.describe_topics, TopicCollection([topic]), request_timeout=_ANSWER_S)
        with suppress(UnknownTopicError, TransientError):
            self._answered(_asking(request), None, ("Describe", f"topic {topic}"))

    def operations(self, topics: Iterable[str]) -> dict[str, frozenset[str] | None]:
        """Return the operations that this client is allowed to perform on each topic. Operations are named as in ACLs.
        None means that the brokers do not report the operations. The result does not contain topics that do not exist,
        and topics that the client is not allowed to describe.
        """
        known = self.topics()
        asked = [name for name in topics if name in known]
        if not asked:
            return {}
        settings = {"include_authorized_operations": True, "request_timeout": _ANSWER_S}
        found = {}
        for name, future in self._admin.describe_topics(TopicCollection(asked), **settings).items():
            ask = _repeated(future, partial(self._admin.describe_topics, TopicCollection([name]), **settings))
            described = self._answered(ask, None, ("Describe", f"topic {name}"))
            allowed = None if described is None else described.authorized_operations
            found[name] = None if allowed is None else frozenset(_word(operation.name) for operation in allowed)
        return found

    def group_operations(self, group: str) -> frozenset[str] | None:
        """Return the operations that this client is allowed to perform on a consumer group. None if the brokers do not
        report the operations, or do not know the group. DeniedError if the client is not allowed to describe the group.
        """
        settings = {"include_authorized_operations": True, "request_timeout": _ANSWER_S}
        ask = _asking(partial(self._admin.describe_consumer_groups, [group], **settings))
        described = self._answered(ask, KafkaError.GROUP_ID_NOT_FOUND, ("Describe", f"group {group}"))
        allowed = None if described is None else described.authorized_operations
        return None if allowed is None else frozenset(_word(operation.name) for operation in allowed)

    def limits(self, topics: Iterable[str]) -> dict[str, int]:
        """Return the maximum record size in bytes of each existing topic.

        If the configuration of a topic cannot be read, its size in the result is MAX_RECORD_BYTES. The brokers then
        refuse records that are too large.
        """
        known = self.topics()
        asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in topics if name in known]
        found = {}
        for resource, future in self._admin.describe_configs(asked).items() if asked else ():
            try:
                answer = self._answered(_repeated(future, partial(self._admin.describe_configs, [resource])))
            except TransientError:
                raise
            except UnknownTopicError:
                continue
            except LogError as error:
                _log.warning("kafka: the configuration of %s cannot be read: %s", resource.name, error)
                answer = None
            size = MAX_RECORD_BYTES if answer is None else int(answer[_LIMIT].value)
            found[resource.name] = max(min(size, MAX_RECORD_BYTES), 0)
        self.small_topics |= {name: limit for name, limit in found.items() if limit <= _BATCH_BYTES}
        return found

    def spans(self, partitions: Iterable[Partition]) -> dict[Partition, Span]:
        """Return the start offset of each partition, and the end offset of its committed records."""
        names = list(partitions)
        for name in names:
            self.check(name)
        starts = self._offsets(names, OffsetSpec.earliest())
        ends = self._offsets(names, OffsetSpec.latest())
        return {name: Span(starts[name], ends[name]) for name in names}

    def _offsets(self, names: Sequence[Partition], which: OffsetSpec) -> dict[Partition, int]:
        if not names:
            return {}
        asked = {TopicPartition(name.topic, name.number): which for name in names}

        def ask() -> dict[Partition, int]:
            futures = self._admin.list_offsets(
                asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_ANSWER_S
            )
            return {Partition(at.topic, at.partition): future.result().offset for at, future in futures.items()}

        topics = ", ".join(sorted({name.topic for name in names}))
        return self._answered(ask, None, ("Describe", f"topic {topics}")) or {}

    def _answered(
        self, ask: Callable[[], T], harmless: int | None = None, needed: tuple[str, str] | None = None
    ) -> T | None:
        """Return a request's result, or None if the request failed with the error code `harmless`. Repeats the request
        after transient errors. `needed`: the operation that the client must be allowed to perform, and the resource of
        this operation.

        DeniedError if ACLs deny the request and `needed` is given. TransientError after the timeout. UnknownTopicError
        for a topic or partition that does not exist. LogError for another permanent error.
        """
        deadline = time.monotonic() + _ANSWER_S
        while True:
            try:
                return ask()
            except KafkaException as exception:
                error = exception.args[0]
                if error.code() == harmless:
                    return None
                if error.code() in UNKNOWN:
                    raise UnknownTopicError(error.str()) from exception
                if needed is not None and error.code() in DENIED:
                    raise self.denied(*needed, error) from exception
                if not error.retriable() and error.code() not in _PASSING:
                    raise LogError(error.str()) from exception
                if time.monotonic() > deadline:
                    raise TransientError(error.str()) from exception
            time.sleep(_RETRY_S)
            self.last_error()  # refreshes the partition leaders

    # ---- clients
    def keep(self, opened: Opened) -> Opened:
        """Add a reader or writer to the list of open readers and writers. `close` closes them."""
        with self._lock:
            self._opened.append(opened)
        return opened

    def forget(self, closed: object) -> None:
        """Remove a closed reader or writer from the list of open readers and writers."""
        with self._lock:
            if closed in self._opened:
                self._opened.remove(closed)

    def committed(self, group: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """Return the group's progress. Partitions without progress are missing."""
        requested = set(partitions)
        if not requested:
            return {}  # confluent-kafka rejects an empty request
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(name.topic, name.number) for name in requested])

        def ask() -> dict[Partition, int]:
            [future] = self._admin.list_consumer_group_offsets([asked], require_stable=True).values()
            stored = future.result().topic_partitions
            for at in stored:
                if at.error is not None:  # a transaction is being settled
                    raise KafkaException(at.error)
            return {Partition(at.topic, at.partition): at.offset for at in stored if at.offset >= 0}

        return self._answered(ask, None, ("Describe", f"group {group}")) or {}

    def close(self) -> None:
        """Close all open readers and writers of this log."""
        with self._lock:
            opened = list(self._opened)
        for each in opened:
            each.close()


def _asking(request: Callable[[], Mapping[Any, Future[T]]]) -> Callable[[], T]:
    """Return a function that sends a request and waits for the result. The request must be for a single item."""
    return lambda: next(iter(request().values())).result()


def _repeated(first: Future[T], request: Callable[[], Mapping[Any, Future[T]]]) -> Callable[[], T]:
    """Return a function that waits for the result of the future `first`. Each further call makes a new request, because
    a failed future never gets another result.
    """
    results = chain([first.result], repeat(_asking(request)))

    def ask() -> T:
        return next(results)()

    return ask


def _new_topic(topic: Topic) -> NewTopic:
    retention = "-1" if topic.retention_ms is None else str(topic.retention_ms)
    config = {
        "cleanup.policy": str(topic.cleanup),
        "retention.ms": retention,
        _LIMIT: str(topic.max_bytes),
        "compression.type": topic.compression,
    }
    return NewTopic(topic.name, num_partitions=topic.partitions, config=config)


def _word(operation: str) -> str:
    """Return the name of an operation in ACLs, such as DescribeConfigs for DESCRIBE_CONFIGS."""
    return "".join(part.capitalize() for part in operation.split("_"))
