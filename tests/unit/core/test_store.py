"""The bound Store: columns in, snapshots out, checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.core import _native
from penstock.errors import DataError, LimitError, StorageError

if TYPE_CHECKING:
    from pathlib import Path

KNOWS, LIKES, GRAPH = 100, 101, 200
OUT, IN = 0, 1


def ids(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


def commit(store: _native.Store, *quads: tuple[int, int, int, int], stream: int = 0, batch: int = 0) -> int:
    columns = np.array(quads, dtype=np.uint64).reshape(-1, 4)
    s, p, o, g = (np.ascontiguousarray(columns[:, i]) for i in range(4))
    return store.commit(s, p, o, g, stream=stream, batch=batch)


@pytest.fixture
def store(tmp_path: Path) -> _native.Store:
    return _native.Store(str(tmp_path / "regions"), shards=2, reserve_bytes=1 << 30)


def test_a_commit_makes_labels_of_graph_and_predicate(store: _native.Store) -> None:
    assert commit(store, (1, KNOWS, 2, 0), (1, KNOWS, 3, GRAPH), (1, KNOWS, 2, 0)) == 1
    assert store.edge_count() == 2
    assert store.label(0, KNOWS) != store.label(GRAPH, KNOWS) != 0
    assert store.label(0, LIKES) == 0
    assert store.graphs() == [GRAPH]


def test_statistics_and_degrees_count_distinct_ends(store: _native.Store) -> None:
    commit(store, (1, KNOWS, 2, 0), (1, KNOWS, 3, 0), (4, KNOWS, 3, 0))
    knows, view = store.label(0, KNOWS), store.view()
    assert _native.source_stats(view, knows) == (3, 2, 2)
    assert _native.source_degree(view, 1, knows, OUT) == 2
    assert _native.source_degree(view, 3, knows, IN) == 2
    assert _native.source_degree(view, 9, knows, IN) == 0


def test_a_view_keeps_its_snapshot_and_its_bounds(store: _native.Store) -> None:
    commit(store, (1, KNOWS, 2, 0), stream=1, batch=5)
    early = store.view()
    commit(store, (1, KNOWS, 3, 0), stream=1, batch=6)
    knows = store.label(0, KNOWS)
    assert _native.source_degree(early, 1, knows, OUT) == 1
    assert _native.source_degree(store.view(), 1, knows, OUT) == 2
    assert _native.source_degree(store.view([(1, 5)]), 1, knows, OUT) == 1
    assert store.log_bytes() > 0
    del early
    store.release(1, 6)
    assert store.log_bytes() == 0


def test_a_view_outlives_the_variable_that_held_its_store(tmp_path: Path) -> None:
    store = _native.Store(str(tmp_path), 1)
    commit(store, (1, KNOWS, 2, 0))
    knows, view = store.label(0, KNOWS), store.view()
    del store
    assert _native.source_degree(view, 1, knows, OUT) == 1


def test_what_is_no_term_is_refused(store: _native.Store) -> None:
    with pytest.raises(DataError, match="not a term"):
        commit(store, (0, KNOWS, 2, 0))
    with pytest.raises(DataError, match="unequal length"):
        store.commit(ids(1), ids(KNOWS), ids(2, 3), ids(0))
    assert store.latest() == 0


def test_a_full_region_is_a_limit_and_changes_nothing(tmp_path: Path) -> None:
    store = _native.Store(str(tmp_path), 1, reserve_bytes=2 << 20)
    many = np.arange(1, 200_001, dtype=np.uint64)
    with pytest.raises(LimitError, match="region is full"):
        store.commit(many, np.full_like(many, KNOWS), many, np.zeros_like(many))
    assert store.edge_count() == 0
    assert commit(store, (1, KNOWS, 2, 0)) == 1


def test_a_saved_store_opens_with_its_labels_and_snapshot(store: _native.Store, tmp_path: Path) -> None:
    commit(store, (1, KNOWS, 2, 0), (1, LIKES, 2, GRAPH))
    store.save(str(tmp_path / "saved"))
    again = _native.Store.open(str(tmp_path / "saved"), str(tmp_path / "again"))
    assert (again.latest(), again.edge_count(), again.graphs()) == (1, 2, [GRAPH])
    assert again.label(GRAPH, LIKES) == store.label(GRAPH, LIKES)
    assert commit(again, (5, KNOWS, 6, 0)) == 2


def test_commits_without_a_stream_survive_several_saves_beside_retained_ones(
    store: _native.Store, tmp_path: Path
) -> None:
    random, batch, edges = np.random.default_rng(1), 6, set[tuple[int, int]]()
    for number in range(6):
        for stream in (0, 1, 2, 0, 1):
            batch += 1
            quads = [(int(random.integers(1, 4)), KNOWS, int(random.integers(2, 9)), 0) for _ in range(4)]
            commit(store, *quads, stream=stream, batch=batch)
            edges |= {(s, o) for s, _, o, _ in quads}
        store.release(2, batch - 2)
        store.save(str(tmp_path / f"saved{number}"))
        store = _native.Store.open(str(tmp_path / f"saved{number}"), str(tmp_path / f"again{number}"))
    assert _native.source_stats(store.view(), store.label(0, KNOWS))[0] == len(edges)


def test_a_damaged_save_is_a_storage_error(store: _native.Store, tmp_path: Path) -> None:
    commit(store, (1, KNOWS, 2, 0))
    store.save(str(tmp_path / "saved"))
    region = next((tmp_path / "saved").glob("shard-0.*"))
    content = bytearray(region.read_bytes())
    content[-1] ^= 1
    region.write_bytes(content)
    with pytest.raises(StorageError, match="checksum"):
        _native.Store.open(str(tmp_path / "saved"), str(tmp_path / "again"))
    with pytest.raises(StorageError):
        _native.Store.open(str(tmp_path / "nothing"), str(tmp_path / "again"))


def test_a_view_of_the_past_sees_what_a_list_had_then_although_many_commits_are_later(store: _native.Store) -> None:
    for number in range(3_000):
        commit(store, (1, KNOWS, 10 + number, 0), (10 + number, KNOWS, 1, 0), stream=1 + number % 2, batch=number // 2)
    knows = store.label(0, KNOWS)
    # forwards, backwards, with streams at different batches, and close to the end
    for first, second in [(100, 100), (700, 690), (50, 60), (20, 20), (1_400, 1_499), (1_499, 1_499), (600, 0)]:
        view = store.view([(1, first), (2, second)])
        assert _native.source_degree(view, 1, knows, OUT) == first + second + 2
        assert _native.source_degree(view, 10 + 2 * first, knows, OUT) == 1
        assert _native.source_degree(view, 12 + 2 * first, knows, OUT) == 0
        commit(store, (2, LIKES, first, 0))
    late = store.view()
    for batch in (200, 900):
        for stream in (1, 2):
            store.release(stream, batch)
        view = store.view([(1, batch), (2, batch + 3)])
        assert _native.source_degree(view, 1, knows, OUT) == 2 * batch + 5
    assert _native.source_degree(late, 1, knows, OUT) == 3_000
