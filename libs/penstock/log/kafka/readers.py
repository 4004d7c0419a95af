"""Readers of a Kafka log."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, TopicPartition

from penstock.log.errors import LogError, RebalancedError, TransientError, UnknownTopicError
from penstock.log.kafka.denials import DENIED
from penstock.log.kafka.error_codes import UNKNOWN
from penstock.log.kafka.unreadable import UnreadableBatches, is_unreadable
from penstock.log.port import END, START, Message, Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import confluent_kafka

    from penstock.log.kafka.connection import KafkaConnection

_SESSION_MS: Final = 10_000  # a member without heartbeats for this long leaves its group
_HEARTBEAT_MS: Final = 1_000
_REBALANCED: Final = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError._STATE,
    KafkaError._ASSIGNMENT_LOST,
    KafkaError._NO_OFFSET,
}
_READING: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",  # also if retention removed the next record
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 50,
    "queued.max.messages.kbytes": 65_536,
}
_DISCOVERED_AT_ONCE: Final = 16
_DISCOVERY_S: Final = 1.0
_log = logging.getLogger("penstock.log.kafka")


class KafkaReader:
    """Reads partitions from given offsets, without a consumer group."""

    def __init__(self, log: KafkaConnection) -> None:
        self._log = log
        # librdkafka requires a group name even without group membership.
        self._consumer = Consumer(log.client(**_READING, **{"group.id": "-", "enable.partition.eof": True}))
        self._positions: dict[Partition, int] = {}
        self._paused: set[Partition] = set()
        self._at_end: set[Partition] = set()
        self._unreadable = UnreadableBatches(log)

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return received records."""
        messages = []
        skipped = False
        for raw in consume(self._consumer, max_records, timeout_s):
            name, offset = Partition(raw.topic(), raw.partition()), raw.offset()
            if is_unreadable(raw):
                message = self._unreadable.skipped(raw)
                if message is not None and name in self._positions and name not in self._paused:
                    self._positions[name] = message.offset + 1
                    messages.append(message)
                    skipped = True
            elif raw.error() is not None:
                if raw.error().code() == KafkaError._PARTITION_EOF:
                    self._reached_end(name, offset)
                elif raw.error().code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # this reader is in no group
                    complain(self._log, raw.error(), name)
            elif offset >= self._positions.get(name, offset + 1) and name not in self._paused:
                self._positions[name] = offset + 1
                self._at_end.discard(name)
                messages.append(_message(raw))
        if skipped:
            self._restart()
        return messages

    def _reached_end(self, name: Partition, offset: int) -> None:
        if name in self._positions:
            self._positions[name] = max(offset, self._positions[name])
            self._at_end.add(name)

    def assign(self, positions: Mapping[Partition, int]) -> None:
        """Read each partition from its position. A partition that is already assigned moves there."""
        for name in positions:
            self._log.check(name)
        self._discover({name.topic for name in positions} - {name.topic for name in self._positions})
        relative = [name for name, offset in positions.items() if offset in {START, END}]
        spans = self._log.spans(relative)
        for name, offset in positions.items():
            self._positions[name] = (
                {START: spans[name].start, END: spans[name].end}[offset] if name in spans else offset
            )
        self._unreadable.forget()
        self._restart()

    def _discover(self, topics: set[str]) -> None:
        """Request the leaders of new topics, if there are few new topics. A request takes milliseconds for one topic.
        Without a request, the client finds the leaders of all topics within a second.
        """
        if len(topics) <= _DISCOVERED_AT_ONCE:
            with suppress(KafkaException):  # the client then finds the topic by itself
                for topic in topics:
                    self._consumer.list_topics(topic, timeout=_DISCOVERY_S)

    def unassign(self, partitions: Iterable[Partition]) -> None:
        """Stop reading these partitions."""
        for name in list(partitions):
            self._positions.pop(name, None)
            self._paused.discard(name)
        self._restart()

    def _restart(self) -> None:
        """Reassign the partitions that are not paused, from their positions. The client drops prefetched records and
        fetches these records again.
        """
        self._at_end.clear()
        active = {name: at for name, at in self._positions.items() if name not in self._paused}
        self._consumer.assign([TopicPartition(name.topic, name.number, at) for name, at in active.items()])

    def pause(self, partitions: Iterable[Partition]) -> None:
        """Stop returning records of these partitions."""
        self._set_paused(self._paused | {name for name in partitions if name in self._positions})

    def resume(self, partitions: Iterable[Partition]) -> None:
        """Resume paused partitions."""
        self._set_paused(self._paused - set(partitions))

    def _set_paused(self, paused: set[Partition]) -> None:
        if paused != self._paused:
            self._paused = paused
            self._restart()

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        return dict(self._positions)

    def caught_up(self) -> bool:
        """Return whether each partition has been polled to its end."""
        return self._at_end >= self._positions.keys()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()
        self._log.forget(self)


class KafkaGroupReader:
    """A member of a consumer group."""

    def __init__(self, log: KafkaConnection, group: str, topics: Sequence[str]) -> None:
        self._log = log
        self._group = group
        membership = {
            "group.id": group,
            "session.timeout.ms": _SESSION_MS,
            "heartbeat.interval.ms": _HEARTBEAT_MS,
            "topic.metadata.refresh.interval.ms": 5_000,
            "enable.partition.eof": True,  # reports positions after transaction markers
        }
        self._consumer = Consumer(log.client(**_READING, **membership))
        self._assigned: frozenset[Partition] = frozenset()
        self._positions: dict[Partition, int] = {}
        self._unreadable = UnreadableBatches(log)
        self.generation = 0
        self.subscribe(topics)

    def subscribe(self, topics: Sequence[str]) -> None:
        """Replace the subscribed topics."""
        if not topics:
            self._consumer.unsubscribe()  # librdkafka rejects an empty subscription
            return
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def _on_assign(self, _: object, partitions: list[TopicPartition]) -> None:
        self._assigned = frozenset(Partition(at.topic, at.partition) for at in partitions)
        self._unreadable.forget()
        self.generation += 1

    def _on_revoke(self, _: object, partitions: list[TopicPartition]) -> None:
        self._assigned -= {Partition(at.topic, at.partition) for at in partitions}
        self._positions = {name: at for name, at in self._positions.items() if name in self._assigned}
        self.generation += 1

    def poll(self, max_records: int = 1000, timeout_s: float = 0.0) -> list[Message]:
        """Return received records of the assigned partitions."""
        messages = []
        for raw in consume(self._consumer, max_records, timeout_s):
            name = Partition(raw.topic() or "", raw.partition() or 0)
            if is_unreadable(raw):
                message = self._unreadable.skipped(raw)
                if message is not None and name in self._assigned:
                    self._positions[name] = message.offset + 1
                    self._consumer.seek(TopicPartition(name.topic, name.number, message.offset + 1))
                    messages.append(message)
            elif raw.error() is not None and raw.error().code() != KafkaError._PARTITION_EOF:
                complain(self._log, raw.error(), name, self._group)
            elif name in self._assigned:
                ended = raw.error() is not None
                self._positions[name] = raw.offset() if ended else raw.offset() + 1
                if not ended:
                    messages.append(_message(raw))
        return messages

    def positions(self) -> dict[Partition, int]:
        """Return the next offset to read of each partition."""
        return dict(self._positions)

    def assigned(self) -> frozenset[Partition]:
        """Return this member's partitions as of the last poll."""
        return self._assigned

    def commit(self, positions: Mapping[Partition, int]) -> None:
        """Store the group's progress."""
        if not positions:
            return
        lost = set(positions) - self._assigned
        if lost:
            raise RebalancedError(f"{sorted(lost)} are now read by another member of {self._group}")
        offsets = [TopicPartition(name.topic, name.number, at) for name, at in positions.items()]
        try:
            stored = self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as exception:
            raise self._commit_failure(exception.args[0]) from exception
        for at in stored or []:
            if at.error is not None:
                raise self._commit_failure(at.error)

    def _commit_failure(self, error: KafkaError) -> LogError:
        text = f"progress of group {self._group}: {error.str()}"
        if error.code() in _REBALANCED:
            return RebalancedError(text)
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return self._log.denied("Read", f"group {self._group}", error)
        return LogError(text) if error.fatal() else TransientError(text)

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._assigned = frozenset()
        self._positions.clear()
        self._log.forget(self)


def consume(consumer: Consumer, max_records: int, timeout_s: float) -> list[confluent_kafka.Message]:
    """Consume records. Waits only for the first record, whereas librdkafka's batch call waits until the batch is
    full.
    """
    first = consumer.poll(timeout_s)
    if first is None:
        return []
    return [first, *(consumer.consume(max_records - 1, 0.0) if max_records > 1 else [])]


def complain(log: KafkaConnection, error: KafkaError, name: Partition, group: str = "") -> None:
    """Raise the exception for an error that a consumer reports. Transient errors are only logged."""
    if error.code() in DENIED:
        of_group = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
        raise log.denied("Read", f"group {group}" if of_group else f"topic {name.topic}", error)
    text = f"{name.topic}[{name.number}]: {error.str()}"
    if error.code() in UNKNOWN:
        raise UnknownTopicError(text)
    if error.fatal():
        raise LogError(text)
    _log.warning("kafka: %s", text)


def _message(raw: confluent_kafka.Message) -> Message:
    kind, timestamp_ms = raw.timestamp()
    headers = raw.headers()
    return Message(
        raw.topic(),
        raw.partition(),
        raw.offset(),
        -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp_ms,
        raw.key(),
        raw.value(),
        tuple((name, value or b"") for name, value in headers) if headers else (),
    )
