"""Writers of a Kafka log."""

from __future__ import annotations

import math
import time
import uuid
from contextlib import contextmanager, suppress
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.log.appending import Appending
from penstock.log.errors import (
    Backpressure,
    FencedError,
    LogError,
    RecordRefusedError,
    RecordTooLargeError,
    TransientError,
    UnknownTopicError,
)
from penstock.log.kafka.callbacks import unmasked
from penstock.log.kafka.denials import DENIED
from penstock.log.kafka.error_codes import FENCED, PURGED, REFUSED, TOO_LARGE, UNKNOWN
from penstock.log.kafka.submission import produce
from penstock.log.kafka.transactional_client import open_client, refuses
from penstock.log.port import MAX_RECORD_BYTES, Partition, Record
from penstock.log.sizes import check_sizes, wire_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import confluent_kafka

    from penstock.log.kafka.connection import KafkaConnection
    from penstock.log.kafka.submission import Delivery

_FLUSH_S: Final = 30.0
_REASON_S: Final = 1.0  # maximum wait for the delivery reports of a failed client
_TRANSACTION_S: Final = 60.0  # after this the brokers abort a transaction whose writer failed
_DELETED_S: Final = 5.0  # maximum duration of the abort of a transaction with records of a deleted topic
_LEAST_S: Final = 1.0  # minimum duration of a call that settles a transaction
_IN_FLIGHT_KBYTES: Final = 262_144
_POLL_S: Final = 0.05
_LOOK_S: Final = 2.0  # interval of the checks for deleted topics while records are not written
_TOPIC: Final = itemgetter(0)
_PLACE: Final = itemgetter(0, 3)  # topic and partition of a `Record`
_UNDELIVERED: Final = KafkaError._MSG_TIMED_OUT  # nothing was committed, unlike with _TIMED_OUT
_BROKEN_OFF: Final = KafkaError._STATE  # a transaction failed while its records were submitted
_WRITING: Final = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 1,
    # the start of a transaction right after another is retried after this time; the default of 100 ms adds to latency
    "retry.backoff.ms": 2,
    "retry.backoff.max.ms": 1000,
    "delivery.timeout.ms": 0,  # unlimited: the caller bounds the wait
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": _IN_FLIGHT_KBYTES,
    "message.max.bytes": MAX_RECORD_BYTES,
    "topic.metadata.propagation.max.ms": 3_000,  # do not wait for a deleted topic
}


class KafkaWriter:
    """Appends single records in order, exactly once."""

    def __init__(self, log: KafkaConnection) -> None:
        self._log = log
        # If a record is lost permanently, later records must not be written: readers would see a gap.
        settings = {"enable.gapless.guarantee": True, "delivery.report.only.error": True}
        self._producer = Producer(log.client(**_WRITING, **settings))
        self._failure: KafkaError | None = None
        self._refusing_topic = ""
        self._appending = Appending()

    def _on_delivery(self, error: KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None and self._reason is None:
            self._failure, self._refusing_topic = error, message.topic() or ""

    @property
    def _reason(self) -> KafkaError | None:
        """The error of the first refused record, or None. After a refusal, the client purges later records. The errors
        of the purged records do not count.
        """
        return None if self._failure is None or self._failure.code() in PURGED else self._failure

    def submit(self, record: Record) -> None:
        """Queue a record for sending."""
        check_sizes((record,))
        self._log.check(Partition(record.topic, record.partition))
        try:  # runs per record: no context manager
            self._producer.poll(0)
            produce(self._producer, record, self._on_delivery)
        except BufferError as error:
            raise Backpressure("too many records are in flight to the brokers") from error
        except (KafkaException, SystemError):
            with self._refusing():
                raise

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        """Raise LogError if the client fails in the `with` block. The error has the reason of the first refused record.
        The writer is then unusable.
        """
        try:
            with unmasked():
                yield
        except KafkaException as exception:
            if self._reason is None:  # the delivery report with the reason is perhaps still queued
                with suppress(KafkaException), unmasked():
                    self._producer.flush(_REASON_S)
            reason = self._reason or exception.args[0]
            if reason.code() in DENIED:
                raise self._log.denied("Write", f"topic {self._refusing_topic}", reason) from exception
            raise LogError(f"a record was refused: {reason.str()}") from exception

    def flush(self) -> None:
        """Wait until all submitted records are durable."""
        with self._refusing():
            left = self._producer.flush(_FLUSH_S)
        if self._failure is not None:
            raise LogError(f"a record was refused: {self._failure.str()}")
        if left:
            raise TransientError(f"{left} records are not acknowledged after {_FLUSH_S} s")

    def append(self, records: Sequence[Record]) -> None:
        """Submit and flush all records, or continue a failed call."""
        check_sizes(records)
        self._appending.run(records, self._submit_in_time, self.flush)

    def _submit_in_time(self, record: Record) -> None:
        while True:
            try:
                return self.submit(record)
            except Backpressure:
                self.flush()

    def close(self) -> None:
        """Close the producer and drop records that are not flushed."""
        with suppress(KafkaException), unmasked():
            self._producer.purge()
            self._producer.flush(0)
        self._log.forget(self)


class KafkaTransactionalWriter:
    """Writes each call's records in one transaction."""

    def __init__(self, log: KafkaConnection, transactional_id: str, *, offsets: bool = True) -> None:
        self._log = log
        self._id = transactional_id
        self._returns_offsets = offsets
        settings = {**_WRITING, "linger.ms": 0, "transactional.id": transactional_id}
        settings["delivery.report.only.error"] = not offsets
        settings["transaction.timeout.ms"] = int(_TRANSACTION_S * 1000)
        settings["delivery.timeout.ms"] = settings["transaction.timeout.ms"]
        self._groups: dict[str, Consumer] = {}
        self._offsets: dict[int, int] = {}
        self._over: LogError | None = None
        self._give_up_at = time.monotonic() + _TRANSACTION_S
        self._refused: tuple[str, KafkaError] | None = None  # topic of the first refused record
        self._refused_before = False
        try:
            self._producer = open_client(log.client(**settings), self._give_up_at)
        except KafkaException as exception:
            error, text = exception.args[0], f"opening {transactional_id}: {exception.args[0].str()}"
            if error.code() in FENCED:
                raise FencedError(text) from exception
            if error.code() in DENIED:
                raise log.denied("Write", f"transactional id {transactional_id}", error) from exception
            raise (TransientError if error.retriable() else LogError)(text) from exception

    def commit(
        self, records: Sequence[Record], consumed: Mapping[Partition, int] | None = None, group: str = ""
    ) -> list[int]:
        """Write all records or none. While no broker answers, the outcome of the transaction is unknown. The call
        therefore waits for a broker, but at most for the log's `give_up_s`.
        """
        assert not consumed or group, "progress is stored for a group"
        if self._over is not None:
            raise self._over
        check_sizes(records)
        for topic, partition in dict.fromkeys(map(_PLACE, records)):
            self._log.check(Partition(topic, partition))
        if consumed:
            self._meet(group, next(iter(consumed)))
        self._give_up_at = time.monotonic() + self._log.give_up_s
        try:
            return self._attempt(records, consumed or {}, group)
        except TransientError:
            if not self._refused_before:
                raise
            # librdkafka 2.16 counts refused records as sent, so the brokers abort the next transaction.
            self._refused_before = False
            return self._attempt(records, consumed or {}, group)

    def _attempt(self, records: Sequence[Record], consumed: Mapping[Partition, int], group: str) -> list[int]:
        try:
            with unmasked():
                self._send(records)
                self._await_delivery(records)
            if consumed:
                self._send_progress(consumed, group)
            self._until_done(self._producer.commit_transaction)
        except KafkaException as exception:
            error = exception.args[0]
            if error.code() in DENIED - REFUSED:
                self._over = self._denial(error, group)
                raise self._over from exception
            failure = self._failure(error)
            self._over = None if isinstance(failure, TransientError) else failure
            if not isinstance(failure, FencedError) and (self._refused is not None or error.code() in REFUSED):
                self._refused_before = True
                raise self._refusal(records, error, over=self._over is not None) from exception
            raise failure from exception
        return [self._offsets[i] for i in range(len(records))] if self._returns_offsets else []

    def _send(self, records: Sequence[Record]) -> None:
        """Begin a transaction with these records. Records of topics with a lower size limit are sent in small batches,
        because the brokers compare the size of a whole batch with the limit.
        """
        self._offsets.clear()
        self._refused = None
        self._producer.begin_transaction()
        if not self._returns_offsets and self._log.small_topics.keys().isdisjoint(map(_TOPIC, records)):
            for record in records:
                self._submit(record, self._delivered)
            return
        held: dict[str, int] = {}
        for i, record in enumerate(records):
            limit = self._log.small_topics.get(record.topic)
            if limit is not None:
                held[record.topic] = held.get(record.topic, 0) + wire_bytes(record)
                if held[record.topic] > limit:
                    self._producer.flush(_TRANSACTION_S)
                    held = {record.topic: wire_bytes(record)}
            self._produce(i, record)

    def _await_delivery(self, records: Sequence[Record]) -> None:
        """Wait until the records are written. Fails soon after a topic is deleted, whereas librdkafka would wait for
        the topic until the transaction times out.
        """
        deadline = time.monotonic() + _TRANSACTION_S
        while (left := self._producer.flush(_LOOK_S)) and self._refused is None:
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(_UNDELIVERED, f"{left} records are not written"))
            self._log.interrupt()
            deleted = self._deleted(records)
            if deleted is not None:
                self._refused = deleted, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "the topic was deleted")
                raise KafkaException(self._refused[1])

    def _deleted(self, records: Sequence[Record]) -> str | None:
        """Return a topic of these records that no longer exists, or None."""
        try:
            known = self._log.topics(_LOOK_S)
        except TransientError:
            return None
        return next((record.topic for record in records if record.partition >= known.get(record.topic, 0)), None)

    def _produce(self, place: int, record: Record) -> None:
        def on_delivery(error: KafkaError | None, message: confluent_kafka.Message) -> None:
            if error is None:
                self._offsets[place] = message.offset()
            else:
                self._delivered(error, message)

        self._submit(record, on_delivery)

    def _delivered(self, error: KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is not None and error.code() in REFUSED:
            self._refused = self._refused or (message.topic() or "", error)

    def _submit(self, record: Record, on_delivery: Delivery) -> None:
        while True:
            try:
                return produce(self._producer, record, on_delivery)
            except BufferError:
                self._producer.poll(_POLL_S)
            except KafkaException as exception:
                if exception.args[0].code() in REFUSED:
                    self._refused = self._refused or (record.topic, exception.args[0])
                raise

    def _refusal(self, records: Sequence[Record], error: KafkaError, *, over: bool) -> RecordRefusedError:
        """Return the error of a refused transaction. The error names the topic that refused a record.

        If the brokers refuse to add a partition to the transaction, they do not name the partition. In this case, this
        method looks for a topic that no longer exists, and otherwise tests each topic separately.
        """
        if self._refused is None:
            topics = sorted({record.topic for record in records})
            culprit = self._deleted(records) if error.code() in UNKNOWN else None
            if culprit is None:
                culprit = next(filter(self._refuses, topics), "") if len(topics) > 1 else topics[0]
            self._refused = culprit, error
        topic, why = self._refused
        kind = RecordRefusedError
        if why.code() in TOO_LARGE:
            kind = RecordTooLargeError
        elif why.code() in UNKNOWN:
            kind = UnknownTopicError
        text = f"{topic}: {why.str()}"
        if why.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            text = str(self._log.denied("Write", f"topic {topic}", why))
        return kind(text, topic, over=over)

    def _refuses(self, topic: str) -> bool:
        settings = {**_WRITING, "linger.ms": 0, "transactional.id": f"{self._id}.try-{uuid.uuid4().hex}"}
        return refuses(self._log.client(**settings), topic)

    def _send_progress(self, consumed: Mapping[Partition, int], group: str) -> None:
        offsets = [TopicPartition(name.topic, name.number, at) for name, at in consumed.items()]
        metadata = self._groups[group].consumer_group_metadata()
        self._until_done(partial(self._producer.send_offsets_to_transaction, offsets, metadata))

    def _meet(self, group: str, name: Partition) -> None:
        """Ensure that the group has a coordinator.

        Only a consumer can create the group's metadata. librdkafka 2.16 hangs in `send_offsets_to_transaction` if the
        brokers have not created the offsets topic yet.
        """
        if group in self._groups:
            return
        consumer = Consumer(self._log.client(**{"group.id": group}))
        deadline = time.monotonic() + _FLUSH_S
        while True:
            try:
                consumer.committed([TopicPartition(name.topic, name.number)], _POLL_S * 20)
                self._groups[group] = consumer
            except KafkaException as exception:
                if exception.args[0].code() in DENIED:
                    consumer.close()
                    raise self._log.denied("Read", f"group {group}", exception.args[0]) from exception
                if exception.args[0].fatal() or time.monotonic() > deadline:
                    consumer.close()
                    raise TransientError(f"group {group}: {exception.args[0].str()}") from exception
                time.sleep(_POLL_S)  # a new coordinator briefly answers NOT_COORDINATOR
            else:
                return

    def _until_done(self, call: Callable[[float], object], within_s: float = math.inf) -> None:
        """Repeat a call until it succeeds or fails permanently. Stops after `within_s` seconds or at the time
        `_give_up_at`, whichever is earlier. The argument of `call` is a timeout in s.
        """
        give_up_at = min(self._give_up_at, time.monotonic() + within_s)
        while True:
            left_s = give_up_at - time.monotonic()
            try:
                with unmasked():
                    call(min(_TRANSACTION_S, max(left_s, _LEAST_S)))
            except KafkaException as exception:
                error = exception.args[0]
                over = time.monotonic() > give_up_at
                if not error.retriable() or error.txn_requires_abort() or over:
                    raise
                self._log.interrupt()
            else:
                return

    def _failure(self, error: KafkaError) -> LogError:
        """Settle the transaction if possible and return the error that describes the failure."""
        text = f"transaction of {self._id}: {error.str()}"
        if error.code() in FENCED:
            return FencedError(text)
        # the abort reveals which error was fatal
        settles = error.code() in {*REFUSED, _UNDELIVERED, _BROKEN_OFF, KafkaError._FATAL}
        if not error.txn_requires_abort() and self._refused is None and not settles:
            return LogError(text)
        # If a partition is deleted while librdkafka 2.16 retries a record, the record stays in the client, and an abort
        # waits for it in vain. The successor of this writer then aborts the transaction.
        deleted = (error if self._refused is None else self._refused[1]).code() in UNKNOWN
        try:
            self._until_done(self._producer.abort_transaction, _DELETED_S if deleted else math.inf)
        except KafkaException as exception:
            fenced = exception.args[0].code() in FENCED
            return FencedError(text) if fenced else LogError(f"{text}; abort: {exception.args[0].str()}")
        return TransientError(text)

    def _denial(self, error: KafkaError, group: str) -> LogError:
        """Try to abort a transaction that ACLs deny, and return the error for the denial."""
        with suppress(KafkaException), unmasked():
            self._producer.abort_transaction(_LEAST_S)
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            return self._log.denied("Read", f"group {group}", error)
        return self._log.denied("Write", f"transactional id {self._id}", error)

    def close(self) -> None:
        """Close the producer."""
        for consumer in self._groups.values():
            consumer.close()
        self._groups.clear()
        with suppress(KafkaException), unmasked():  # the writer was fenced
            self._producer.purge()
            self._producer.flush(0)
        self._log.forget(self)
