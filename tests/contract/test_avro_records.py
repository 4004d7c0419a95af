"""Records in Avro have the answers that records in JSON have: random answers of all forms, decoded by fastavro."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core import _native as native
from penstock.engine.answers.avro.row_records import (
    RowFormat,
    encode_members,
    encode_rows,
    error_value,
    line_of,
    query_of,
    schema_id_of,
)
from penstock.engine.answers.avro.row_schema import ANSWERS, RowSchema
from penstock.engine.answers.evaluation_records import RecordNames, encode
from penstock.engine.answers.json_lines import one_line
from penstock.engine.answers.result_blocks import Block, Reading
from penstock.errors import LimitError
from penstock.query.ir import Form
from support.avro_rows import XSD, plain, row_of

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
TERMS = {
    "string": st.one_of(
        st.tuples(st.just(1), st.just("urn:x"), st.just(""), st.just("")),
        st.tuples(st.just(2), st.sampled_from(["b1", "b2"]), st.just(""), st.just("")),
        st.tuples(st.just(3), TEXTS, st.sampled_from([XSD + "string", XSD + "decimal", "urn:d"]), st.just("")),
        st.tuples(st.just(3), TEXTS, st.just("http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"), st.just("fr")),
    ),
    "long": INTEGERS.map(lambda n: (3, str(n), XSD + "integer", "")),
    "double": st.floats(allow_nan=False).map(lambda x: (3, repr(x).replace("inf", "INF"), XSD + "double", "")),
    "boolean": st.sampled_from(["true", "false"]).map(lambda text: (3, text, XSD + "boolean", "")),
}
READINGS = st.builds(
    Reading,
    time=st.integers(0, 250_000_000_000_000),  # fastavro ends with the year 9999
    windows=st.just({"urn:s": (0, 10)}),
    snapshot=st.integers(0, (1 << 63) - 1),
    vts=st.just({}),
    attempt=st.integers(1, 9),
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[Block, RowSchema, np.ndarray]:
    """Return a block, the schema of its records, and the numbers of its members."""
    form = draw(st.sampled_from(list(Form)))
    kinds = draw(st.lists(st.sampled_from(list(TERMS)), max_size=4)) if form is Form.SELECT else ["string"] * 3
    members = draw(st.integers(1, 6))
    present = sorted(draw(st.sets(st.integers(1, members))))
    counts = [draw(st.integers(1, 4)) for _ in present]
    terms, rows = native.TextTerms(), sum(counts)
    column = lambda kind: [  # noqa: E731 - a column of ids
        0 if form is Form.SELECT and draw(st.integers(0, 4)) == 0 else terms.id_of(*draw(TERMS[kind]))
        for _ in range(rows)
    ]
    columns = () if form is Form.ASK else tuple(np.array(column(kind), np.uint64) for kind in kinds)
    variables = tuple(f"v{i}" for i in range(len(kinds))) if form is Form.SELECT else ()
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    given: Any = None  # a block's members are used only by its readers
    block = Block(draw(READINGS), form, variables, columns, given, np.array(present, np.uint64), starts, terms)
    fields = tuple(zip(variables, kinds, strict=True)) if form is Form.SELECT else (ANSWERS[form],)
    chosen = sorted(draw(st.sets(st.integers(1, members), min_size=1)))
    return block, RowSchema(form, fields), np.array(chosen, np.uint64)


def assert_is(rows: list[dict[str, Any]], line: dict[str, Any], schema: RowSchema) -> None:
    for row in rows:
        assert (row["_time"], row["_snapshot"], row["_error"]) == (line["time"], line["snapshot"], None)
    if schema.form is not Form.SELECT:
        ((name, _),) = schema.fields
        assert [row[name] for row in rows] == [line[name]]
        return
    bindings = line["results"]["bindings"]
    assert [row["_row"] for row in rows] == list(range(max(len(bindings), 1)))
    assert {row["_rows"] for row in rows} == {len(bindings)}
    for row, binding in zip(rows, bindings or [{}], strict=True):
        for name, kind in schema.fields:
            assert row[name] == (plain(binding[name], kind) if name in binding else None)


@given(answers(), st.lists(TEXTS, min_size=6, max_size=6, unique=True))
@settings(max_examples=300, deadline=None)
def test_random_answers_of_queries(given, names):
    block, schema, numbers = given
    record_names, row_format = RecordNames(names), RowFormat(7, schema.row_types)
    parsed = json.loads(schema.text())
    lines = encode(block, record_names, numbers, "json")
    found = encode_rows(block, record_names.native, numbers, row_format)
    assert len(found.keys) == len(found.values) == sum(found.counts)
    at = 0
    for key, value, count, name in zip(lines.keys, lines.values, found.counts, record_names.of(numbers), strict=True):
        rows = [row_of(each, lambda _: parsed) for each in found.values[at : at + count]]
        assert_is(rows, json.loads(value), schema)
        assert {row["_query"] for row in rows} == {name}
        assert [*found.keys[at : at + count]] == [key, *(key + b"/%d" % i for i in range(1, count))]
        head = line_of(found.values[at], of_set=False)
        assert head == {"query": name, "time": block.reading.time, "snapshot": block.reading.snapshot}
        assert (query_of(found.values[at]), schema_id_of(found.values[at])) == (name, 7)
        at += count


@given(answers(), st.lists(TEXTS, min_size=6, max_size=6, unique=True), TEXTS)
@settings(max_examples=200, deadline=None)
def test_random_answers_of_query_sets(given, keys, name):
    block, schema, numbers = given
    of_set = RowSchema(schema.form, schema.fields, of_set=True)
    parsed = json.loads(of_set.text())
    chosen = [keys[number - 1] for number in numbers.tolist()]
    lines = encode(block, RecordNames(keys), numbers, "json")
    row_format = RowFormat((1 << 31) - 1, schema.row_types, of_set=True)
    found = encode_members(block, name, chosen, numbers, row_format)
    at = 0
    for key, value, count, member in zip(lines.keys, lines.values, found.counts, chosen, strict=True):
        rows = [row_of(each, lambda _: parsed) for each in found.values[at : at + count]]
        assert_is(rows, json.loads(value), of_set)
        assert {(row["_query"], row["_member"]) for row in rows} == {(name, member)}
        assert found.keys[at] == f"{name}/".encode() + key
        assert line_of(found.values[at], of_set=True)["member"] == member
        at += count


@given(answers(), TEXTS, TEXTS, TEXTS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_errors_have_the_schema_of_the_answers(given, query, member, error, of_set):
    block, schema, _ = given
    schema = RowSchema(schema.form, schema.fields, of_set)
    line = {"query": query, "time": block.reading.time, "snapshot": block.reading.snapshot, "error": error}
    if of_set:
        line["member"] = member
    value = error_value(one_line(line).encode(), RowFormat(7, schema.row_types, of_set))
    row = row_of(value, lambda _: json.loads(schema.text()))
    assert (row["_query"], row["_error"], row.get("_member")) == (query, error, member if of_set else None)
    assert all(row[name] is None for name, _ in schema.fields)
    assert line_of(value, of_set=of_set) == line


@pytest.mark.parametrize(("kind", "text"), [("l", "1.5"), ("l", str(1 << 63)), ("d", "much")])
def test_a_term_without_the_type_of_its_field_is_an_error(kind, text):
    terms = native.TextTerms()
    column = np.array([terms.id_of(3, text, XSD + "string")], np.uint64)
    reading, first = Reading(1, {}, 0, {}, 1), np.array([1], np.uint64)
    given: Any = None
    block = Block(reading, Form.SELECT, ("v",), (column,), given, first, np.array([0, 1], np.int64), terms)
    with pytest.raises(LimitError, match=f'the value "{text}" does not have the type of its field in Avro'):
        encode_rows(block, RecordNames(["q"]).native, first, RowFormat(1, kind))
