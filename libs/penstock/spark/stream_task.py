"""The part of the stream adaptor that runs in Spark tasks: converts Arrow batches of messages to Arrow batches of
records.

`penstock.ingest.event_adapter` converts the events, as in the plain adaptor. A worker process runs many tasks one after
the other. Between tasks, the process keeps its dictionary and its connection to the dictionary service.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.ingest.event_adapter import EventAdapter
from penstock.log import Message, Partition
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from penstock.spark.task import patiently
from penstock.term_ids.flight_terms import FlightTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from penstock.log import Record
    from penstock.log.topics import TopicNames
    from penstock.mapping.encodings.registry_access import RegistryAccess
    from penstock.term_ids.peer_certificates import PeerCertificates
    from penstock.wire import StreamDeclaration, StreamPredicates

READ = ("topic", "partition", "offset", "time_ms", "key", "value", "headers")
"""Input columns of a task, which are the fields of a message. `time_ms` is the timestamp of the record in the log.
`headers` is a list of (key, value).
"""
RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("events", pa.int64()),  # statistics of the batch, in its first row
        ("tuples", pa.int64()),
        ("dead", pa.int64()),
        ("discarded", pa.int64()),
    ]
)
RECORDS_DDL = (
    "topic string, partition int, key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "events bigint, tuples bigint, dead bigint, discarded bigint"
)


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Settings of the tasks.

    - `declared`: streams by events topic.
    - `filters`: the predicate filters of these streams, by IRI.
    - `written`: for each partition, an offset. Events before this offset are known to be written.
    - `give_up_s`: how long a task waits in s for an unavailable dictionary or schema registry.
    """

    names: TopicNames
    dictionaries: tuple[str, ...]
    declared: Mapping[str, StreamDeclaration]
    written: Mapping[Partition, int]
    give_up_s: float
    filters: Mapping[str, StreamPredicates] = field(default_factory=dict)
    certificates: PeerCertificates | None = None
    registry: RegistryAccess | None = None


_adapting: dict[tuple[TopicNames, tuple[str, ...]], EventAdapter] = {}
"""The event adapters of this worker process. There is only one adapter, unless a test runs several clusters in one
session.
"""


def adapt(settings: TaskSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Convert rows with the columns READ to rows with the columns RECORDS. The rows are in order within each partition.
    TransientError if the dictionary or the schema registry is unavailable.
    """
    key = settings.names, settings.dictionaries
    if key not in _adapting:
        terms = FlightTerms(settings.dictionaries, settings.certificates)
        registry = None if settings.registry is None else SchemaRegistry(settings.registry)
        _adapting[key] = EventAdapter(settings.names, terms, registry)
    adapting = _adapting[key]
    adapting.follow(settings.declared, settings.filters)
    for batch in batches:
        before = _counts(adapting)
        records = patiently(partial(adapting.records, _unwritten(messages_of(batch), settings)), settings.give_up_s)
        if records:
            yield _rows(records, _counts(adapting) - before)


def _unwritten(messages: Iterable[Message], settings: TaskSettings) -> list[Message]:
    return [m for m in messages if m.offset >= settings.written.get(Partition(m.topic, m.partition), 0)]


def _counts(adapting: EventAdapter) -> NDArray[np.int64]:
    return np.array([adapting.events, adapting.tuples, adapting.dead, adapting.discarded])


def messages_of(batch: Any) -> list[Message]:
    """Return a batch's rows as messages."""
    topics, partitions, offsets, times, keys, values = (batch.column(name).to_pylist() for name in READ[:-1])
    headers = _headers(batch.column(READ[-1]))
    return [
        Message(topic, partition, offset, time_ms, key, value, own)
        for topic, partition, offset, time_ms, key, value, own in zip(
            topics, partitions, offsets, times, keys, values, headers, strict=True
        )
    ]


def _headers(column: Any) -> list[tuple[tuple[str, bytes], ...]]:
    """Return each row's headers. A null gives no headers."""
    every = column.flatten()
    pairs = [(key, value or b"") for key, value in zip(*(every.field(i).to_pylist() for i in (0, 1)), strict=True)]
    counts = [count or 0 for count in column.value_lengths().to_pylist()]
    ends = np.cumsum(np.array(counts, np.int64)).tolist()
    return [tuple(pairs[end - count : end]) for count, end in zip(counts, ends, strict=True)]


def _rows(records: Sequence[Record], made: NDArray[np.int64]) -> Any:
    counts = np.zeros((len(made), len(records)), np.int64)
    counts[:, 0] = made
    columns = [
        [record.topic for record in records],
        [record.partition for record in records],
        [record.key for record in records],
        [record.value for record in records],
        [[{"key": name, "value": value} for name, value in record.headers] for record in records],
        *counts,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
