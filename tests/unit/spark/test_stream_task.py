"""What Spark's tasks make of hostile events: the plain adaptor's dead letters, and no failed task."""

from __future__ import annotations

import pyarrow as pa

from penstock.core import _native as native
from penstock.log.topics import TopicNames
from penstock.rdf.formats import Format
from penstock.spark import stream_task
from penstock.spark.stream_task import READ, TaskSettings, adapt
from penstock.wire import StreamDeclaration
from support.hostile import DOCUMENTS, TOKENS

NAMES = TopicNames("task")
GOOD = b'<http://x/a> <http://x/p> "a literal" .'
HOSTILE = [
    ("xml", DOCUMENTS["entities"][1](0)),
    ("turtle", TOKENS["literal"][1](17 << 20)),
    ("turtle", DOCUMENTS["triple terms"][1](3_400_000)),
    ("json-ld", DOCUMENTS["objects in objects"][1](150_000)),
    ("json-ld", '{"temperature": 1}'),
]


class Terms:
    def __init__(self, _locations, _certificates=None) -> None:
        self.dictionary = native.Dictionary()

    def encode(self, terms):
        return self.dictionary.intern_many(list(terms))


def batch():
    values, headers = [GOOD], [[]]
    for name, text in HOSTILE:
        values += [text.encode(), GOOD]
        headers += [[{"key": "content-type", "value": Format(name).media_type.encode()}], []]
    n = len(values)
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    columns = [
        pa.array([NAMES.events("s")] * n),
        pa.array([0] * n, pa.int32()),
        pa.array(range(n), pa.int64()),
        pa.array([1_000] * n, pa.int64()),
        pa.nulls(n, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(headers, pairs),
    ]
    return pa.RecordBatch.from_arrays(columns, names=list(READ))


def test_a_task_writes_hostile_events_as_dead_letters(monkeypatch):
    monkeypatch.setattr(stream_task, "FlightTerms", Terms)
    declared = {NAMES.events("s"): StreamDeclaration(1, "http://x/s", "s", 100, 0, True, (), 0, 10_000, 86_400_000)}
    [rows] = adapt(TaskSettings(NAMES, ("nowhere",), declared, {}, 1.0), [batch()])
    made = rows.to_pylist()
    assert (made[0]["events"], made[0]["dead"]) == (len(HOSTILE) + 1, len(HOSTILE))
    letters = [row for row in made if row["topic"] == NAMES.dead_letter]
    assert [row["value"] for row in letters] == [text.encode() for _, text in HOSTILE]
