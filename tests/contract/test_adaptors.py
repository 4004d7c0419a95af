"""Every adaptor makes the same records of the same messages, however they are dealt out to its calls.

What Spark's tasks call is called here without Spark; tests/spark has the same over a real one.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest

from penstock.ingest import event_adapter as adapting
from penstock.log import Partition, Record, TransientError
from penstock.log.topics import TopicNames
from penstock.spark import stream_task, task
from penstock.spark.stream_task import TaskSettings, adapt
from penstock.wire import StreamPredicates
from support import adaptors

NAMES = TopicNames()
_READ = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


@pytest.fixture(scope="module")
def dictionary():
    with adaptors.dictionary() as running:
        yield running


@pytest.fixture(autouse=True)
def new_worker(monkeypatch):
    monkeypatch.setattr(stream_task, "_adapting", {})


def settings(dictionary, **more):
    declared = {NAMES.events(name): each for name, each in adaptors.declarations().items()}
    given = {"dictionaries": (dictionary.address,), "declared": declared, "written": {}, "give_up_s": 0.0}
    return TaskSettings(NAMES, **(given | more))


def batches(records, rows_per_batch):
    """Messages as Spark hands them to a task: partition after partition, with the log's offsets."""
    rows = []
    for (topic, partition), own in groupby(
        sorted(records, key=lambda r: (r.topic, r.partition)), key=lambda r: (r.topic, r.partition)
    ):
        for offset, record in enumerate(own):
            headers = [{"key": key, "value": value} for key, value in record.headers] or None
            rows.append((topic, partition, offset, record.timestamp_ms, record.key, record.value, headers))
    for first in range(0, len(rows), rows_per_batch):
        columns = zip(*rows[first : first + rows_per_batch], strict=True)
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, _READ, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_READ)


def run(dictionary, given, rows_per_batch):
    found, made = [], [0, 0, 0, 0]
    for batch in adapt(given, batches(adaptors.messages(NAMES), rows_per_batch)):
        assert batch.schema == stream_task.RECORDS
        topics, partitions, keys, values, headers, *counts = (column.to_pylist() for column in batch.columns)
        pairs = [tuple((pair["key"], pair["value"]) for pair in row) for row in headers]
        found += map(Record, topics, values, keys, partitions, pairs)
        made = [total + sum(count) for total, count in zip(made, counts, strict=True)]
    return adaptors.written(found, dictionary.terms), made


@pytest.mark.parametrize("rows_per_batch", [1, 7, 100_000])
def test_tasks_of_spark_make_the_plain_adaptors_records(dictionary, rows_per_batch):
    plain, adaptor = adaptors.by_plain(NAMES, dictionary, adaptors.messages(NAMES))
    assert sum(map(len, plain.events.values())) > 600
    assert len(plain.dead) == 16
    found, made = run(dictionary, settings(dictionary), rows_per_batch)
    assert found == plain
    assert made == [adaptor.adapting.events, adaptor.adapting.tuples, adaptor.adapting.dead, 0]


def test_the_cuts_of_large_records_are_the_same(dictionary, monkeypatch):
    monkeypatch.setattr(adapting, "MAX_TUPLES", 3)
    plain, _ = adaptors.by_plain(NAMES, dictionary, adaptors.messages(NAMES))
    assert "more than 3 triples" in {reason for reason, *_ in plain.dead.values()}.__str__()
    assert run(dictionary, settings(dictionary), 50)[0] == plain


@pytest.mark.parametrize("passed", [(), ("http://x/p",), ("http://x/q", "http://x/r", "http://x/unheard-of")])
def test_both_adaptors_discard_unread_predicates_and_preserve_every_event(dictionary, passed):
    messages = adaptors.messages(NAMES)
    plain, adaptor = adaptors.by_plain(NAMES, dictionary, messages, passed)
    records = {iri: StreamPredicates(iri, 1, passed, np.ones(len(passed), np.int64)) for iri in adaptors.STREAMS}
    found, made = run(dictionary, settings(dictionary, filters=records), 50)
    assert found == plain
    assert found.versions == {1}
    every, all_of_it = adaptors.by_plain(NAMES, dictionary, messages)
    assert plain.dead == every.dead
    assert made[0] == adaptor.adapting.events == all_of_it.adapting.events
    assert made[1] == adaptor.adapting.tuples == all_of_it.adapting.tuples - adaptor.adapting.discarded
    assert made[3] == adaptor.adapting.discarded > 0
    for name, events in every.events.items():
        assert [event[:3] for event in plain.events[name]] == [event[:3] for event in events]
        for (_, kind, *_, terms), cut in zip(events, plain.events[name], strict=True):
            if kind != "heartbeat":
                left = [triple for triple in triples(terms) if triple[1][1] in passed]
                assert len(triples(cut[-1])) == len(left)


def triples(terms):
    return [terms[i : i + 3] for i in range(0, len(terms), 3)]


def test_what_is_known_to_be_written_is_not_written_again(dictionary):
    source = Partition(NAMES.events("a"), 1)
    found, _ = run(dictionary, settings(dictionary, written={source: 100}), 50)
    plain, _ = adaptors.by_plain(NAMES, dictionary, adaptors.messages(NAMES))
    target = Partition(NAMES.tuples("a"), 1)
    expected = plain.events.pop(target)
    begun = next(i for i, event in enumerate(expected) if event[1] != "heartbeat" and event[1] >= 100)
    assert found.events.pop(target) == expected[begun:]
    assert found.events == plain.events


def test_messages_of_streams_that_are_not_declared_any_more_are_dropped(dictionary):
    declared = {NAMES.events("b"): adaptors.declarations()["b"]}
    found, _ = run(dictionary, settings(dictionary, declared=declared), 50)
    assert {name.topic for name in found.events} == {NAMES.tuples("b")}
    assert {topic for topic, _, _ in found.dead} == {NAMES.events("b")}


def test_adaptors_wait_for_an_unavailable_dictionary_within_a_bound(dictionary, monkeypatch):
    pauses = []
    monkeypatch.setattr(task.time, "sleep", pauses.append)
    given = settings(dictionary, dictionaries=("grpc://127.0.0.1:1",), give_up_s=0.3)
    with pytest.raises(TransientError, match="no dictionary responds"):
        run(dictionary, given, 50)
    assert sorted(pauses) == pauses
    assert len(pauses) >= 1
