"""Records come back as they were written; other bytes are an error."""

from __future__ import annotations

import contextlib
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import wire
from penstock.wire.library import library
from unit.wire.examples import EXAMPLES


def same(a: object, b: object) -> bool:
    return type(a) is type(b) and all(_equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def _equal(a: object, b: object) -> bool:
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: type(e).__name__)
def test_a_record_comes_back_as_it_was(example):
    assert same(wire.decode(wire.encode(example)), example)


def test_there_is_an_example_and_a_class_for_every_schema():
    assert {type(e).__name__ for e in EXAMPLES} == set(library().by_name)


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
