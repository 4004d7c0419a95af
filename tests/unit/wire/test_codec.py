"""Records survive the log: today's, and those that every earlier version wrote."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import fields
from pathlib import Path

import fastavro
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import wire
from penstock.wire.library import FOLDER, Library, library
from unit.wire.examples import EXAMPLES

WRITTEN = Path(__file__).parent / "written"


def same(a: object, b: object) -> bool:
    return type(a) is type(b) and all(_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def _equal(a: object, b: object) -> bool:
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: type(e).__name__)
def test_a_record_comes_back_as_it_was(example):
    assert same(wire.decode(wire.encode(example)), example)


def test_there_is_an_example_and_a_class_for_every_schema():
    assert {type(e).__name__ for e in EXAMPLES} == set(library().current)


@pytest.mark.parametrize("path", sorted(WRITTEN.glob("*/*.avro")), ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_record_that_an_earlier_version_wrote_is_still_read(path):
    expected = next(e for e in EXAMPLES if type(e).__name__ == path.stem)
    found = wire.decode(path.read_bytes())
    assert type(found) is type(expected)
    if path.parent.name == "1":
        assert same(found, expected)


def test_every_schema_that_ever_wrote_a_kept_record_is_known():
    """Whoever changes a schema moves the one before to schemas/history, or this and the test above fail."""
    assert {path.stem for path in (WRITTEN / "1").glob("*.avro")} <= set(library().current)


def test_columns_are_views_and_not_copies():
    batch = wire.decode(wire.encode(next(e for e in EXAMPLES if isinstance(e, wire.ShardBatch))))
    assert not batch.subjects.flags.owndata
    assert batch.subjects.dtype == np.dtype("<u8")


@pytest.mark.parametrize("junk", [b"", b"hello", b"\xc3\x01", b"\xc3\x01" + b"\0" * 8 + b"x"])
def test_what_is_no_record_is_an_error_that_says_so(junk):
    with pytest.raises(wire.WireError):
        wire.decode(junk)


@given(st.sampled_from(EXAMPLES), st.data())
def test_damaged_bytes_are_an_error_or_another_record_but_never_a_crash(example, data):
    raw = bytearray(wire.encode(example))
    cut = data.draw(st.integers(0, len(raw)))
    with pytest.raises(wire.WireError):
        wire.decode(bytes(raw[:cut]) if cut < len(raw) else bytes(raw) + b"\0")
    at = data.draw(st.integers(10, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(wire.WireError):
        wire.decode(bytes(raw))


def test_a_field_may_be_added_with_a_default(tmp_path):
    """The way schemas change: the older one goes to history, and its records get the default of what they lack."""
    (tmp_path / "history").mkdir()
    for path in FOLDER.glob("*.avsc"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    older = json.loads((FOLDER / "query_stop.avsc").read_text())
    older["name"] = "QueryRegistration"
    older["fields"] += json.loads((FOLDER / "query_registration.avsc").read_text())["fields"][2:5]
    older["fields"] = [f for f in older["fields"] if f["name"] != "base"]
    older["fields"].insert(3, {"name": "streams", "type": {"type": "array", "items": "string"}})
    older["fields"].append({"name": "group", "type": "long"})
    older["fields"] = list({f["name"]: f for f in older["fields"]}.values())
    (tmp_path / "history" / "query_registration-0.avsc").write_text(json.dumps(older))
    known = Library(tmp_path)
    schema = next(s for s in known.by_print.values() if s is not known.current.get(s.name))
    out = io.BytesIO()
    values = {"number": 1, "name": "q", "text": "t", "topic": None, "streams": ["s"], "group": 1}
    fastavro.schemaless_writer(out, schema.parsed, {f["name"]: values[f["name"]] for f in older["fields"]})
    found = wire.decode(b"\xc3\x01" + schema.print + out.getvalue(), known)
    assert found == wire.QueryRegistration(1, "q", "t", 1, ("s",), None, None)
