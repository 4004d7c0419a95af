"""Opens the client of a transactional writer as soon as the brokers accept the client."""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException, Producer

from penstock.log.kafka.callbacks import unmasked
from penstock.log.kafka.error_codes import REFUSED
from penstock.log.kafka.submission import produce
from penstock.log.port import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONNECT_S: Final = 2.0  # wait for the first connection of a client
_OPEN_S: Final = 0.1  # wait for the opening, which normally takes .01 s
_TRY_S: Final = 30.0  # wait for each step of a tried transaction
_OPEN_TRIES: Final = 4  # after these tries, each wait is twice as long as the wait before


def open_client(settings: Mapping[str, Any], give_up_at: float) -> Producer:
    """Return a client that has fenced the previous client with the same transactional id. KafkaException if this fails
    permanently, or does not succeed before the time `give_up_at` (monotonic clock).

    While the brokers abort the open transaction of the previous client, they refuse requests of the new client. After
    such a refusal, or without a connection, librdkafka 2.16 waits 500 ms before it retries. During this time, no client
    can commit. This function therefore retries at once, with a new client.
    """
    for tries in count():
        left_s = give_up_at - time.monotonic()
        patience_s = _OPEN_S * 2 ** max(tries - _OPEN_TRIES, 0)  # brokers can be slow or unavailable
        producer = Producer(dict(settings))
        with suppress(KafkaException):
            producer.list_topics(timeout=max(min(_CONNECT_S, left_s), _OPEN_S))  # connects
        try:
            with unmasked():
                producer.init_transactions(max(min(patience_s, left_s), _OPEN_S))
        except KafkaException as exception:
            error = exception.args[0]
            if not error.retriable() or error.txn_requires_abort() or time.monotonic() > give_up_at:
                raise
        else:
            return producer
    raise AssertionError


def refuses(settings: Mapping[str, Any], topic: str) -> bool:
    """Return whether a topic refuses a small record. The function writes the record in a transaction of a separate
    client, and aborts the transaction.
    """
    refused: list[KafkaError] = []
    producer = Producer(dict(settings))
    try:
        with unmasked():
            producer.init_transactions(_TRY_S)
            producer.begin_transaction()
            produce(producer, Record(topic, b"", b"", 0), lambda error, _: refused.append(error) if error else None)
            producer.flush(_TRY_S)
            producer.abort_transaction(_TRY_S)
    except KafkaException as exception:
        return bool(refused) or exception.args[0].code() in {*REFUSED, KafkaError.INVALID_TXN_STATE}
    return bool(refused)
