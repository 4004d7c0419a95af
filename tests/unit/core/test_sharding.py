"""Which shard keeps a vertex: the log's records, the stored graph and bulk loads all ask the same function."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.errors import LimitError


def test_shards_are_where_they_have_always_been():
    ids = np.array([0, 1, 2, 3, 2**60, 2**64 - 1], np.uint64)
    assert native.shard_numbers(ids, 16).tolist() == SHARDS
    assert native.shard_numbers(ids, 1).tolist() == [0] * 6


SHARDS = [9, 10, 0, 9, 1, 14]


def test_shards_are_even():
    counts = np.bincount(native.shard_numbers(np.arange(160_000, dtype=np.uint64), 16), minlength=16)
    assert counts.min() > 9_500
    assert counts.max() < 10_500


def test_bins_of_a_bulk_load_lie_in_the_shards():
    ids = np.arange(1_000, dtype=np.uint64)
    assert (native.bins(ids, 5, 7) // 7 == native.shard_numbers(ids, 5)).all()


def test_there_is_no_vertex_without_a_shard():
    with pytest.raises(LimitError):
        native.shard_numbers(np.arange(3, dtype=np.uint64), 0)
