"""The stream adaptor in Spark's tasks: Arrow batches of messages to Arrow batches of records.

`penstock.ingest.event_adapter` handles the events, as in the plain adaptor; this module holds what is Spark's. A worker
process outlives its tasks, and so do its dictionary and its connection to the service.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.ingest.event_adapter import EventAdapter
from penstock.log import Message, Partition
from penstock.spark.task import patiently
from penstock.term_ids.flight_terms import FlightTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from penstock.log import Record
    from penstock.log.topics import TopicNames
    from penstock.wire import StreamDeclaration, StreamWanted

READ = ("topic", "partition", "offset", "time_ms", "value", "headers")
"""Columns that a task takes: a message's, `time_ms` the log's own timestamp, `headers` a list of (key, value)."""
RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        ("events", pa.int64()),  # what a batch of records was made of, in its first row
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
    """What tasks must know.

    `declared`: streams by the topic of their events; `wanted`: what to let through of them, by IRI. `written`: per
    partition, up to where its events are known to be written. `give_up_s`: how long a dictionary that is away is
    waited for.
    """

    names: TopicNames
    dictionaries: tuple[str, ...]
    declared: Mapping[str, StreamDeclaration]
    written: Mapping[Partition, int]
    give_up_s: float
    wanted: Mapping[str, StreamWanted] = field(default_factory=dict)


_adapting: dict[tuple[TopicNames, tuple[str, ...]], EventAdapter] = {}
"""Of this worker process: one, unless a test runs several clusters in one session."""


def adapt(settings: TaskSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Turn rows of READ, each partition's in order, into rows of RECORDS. TransientError without a dictionary."""
    key = settings.names, settings.dictionaries
    if key not in _adapting:
        _adapting[key] = EventAdapter(settings.names, FlightTerms(settings.dictionaries))
    adapting = _adapting[key]
    adapting.follow(settings.declared, settings.wanted)
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
    topics, partitions, offsets, times, values = (batch.column(name).to_pylist() for name in READ[:-1])
    headers = _headers(batch.column(READ[-1]))
    return [
        Message(topic, partition, offset, time_ms, None, value, own)
        for topic, partition, offset, time_ms, value, own in zip(
            topics, partitions, offsets, times, values, headers, strict=True
        )
    ]


def _headers(column: Any) -> list[tuple[tuple[str, bytes], ...]]:
    """Each row's headers; null = none."""
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
