"""The store service: what the log says of the stored graph, in shards that come, go, and are saved."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.errors import StorageError
from penstock.log import TransientError
from penstock.services.store import follower
from penstock.services.store.shard_checkpoints import ShardCheckpoints
from penstock.services.store.shard_openings import ShardOpenings
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from penstock.services.store.shard_store import ShardStore
    from penstock.services.store.store import Store

EX = "http://ex.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
SHARDS = 4
OVER_S = (
    f"SELECT ?o FROM NAMED WINDOW <urn:w> ON <{EX}s> [RANGE PT1S STEP PT1S] "
    f"WHERE {{ WINDOW <urn:w> {{ ?x <{EX}at> ?o }} }}"
)
Quad = tuple[str, str, str, str]


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    with_shards = SmallCluster(engines=1, shards=SHARDS)
    with_shards.coordinator.declare(EX + "s", "s", batch_ms=100, timing=(EX + "at",), absorb_into=EX + "g")
    yield with_shards
    with_shards.close()


def quads(cluster: SmallCluster) -> set[Quad]:
    """All quads that the stores hold, read in their regions: the same by subjects as by objects."""
    shards = {number: shard for store in cluster.stores.values() for number, shard in store.shards.items()}
    assert sorted(shards) == list(range(SHARDS))
    out = {quad for shard in shards.values() for quad in _edges(shard, 0)}
    into = {(g, p, o, s) for shard in shards.values() for g, p, s, o in _edges(shard, 1)}
    assert out == into
    ids = sorted({i for quad in out for i in quad})
    terms = dict(zip(ids, native.LocalTerms(native.Dictionary()).decode(_inline(ids)), strict=True))
    entries = [i for i in ids if i and not i >> 60 > 2]
    named = dict(zip(entries, cluster.terms.decode(np.array(entries, np.uint64)), strict=True))

    def text(i: int) -> str:
        term = named.get(i) or terms[i]
        return "" if term is None else term[1].removeprefix(EX)

    return {(text(g), text(p), text(s), text(o)) for g, p, s, o in out}


def _inline(ids: list[int]) -> np.ndarray:
    return np.array([i if i >> 60 > 2 else 0 for i in ids], np.uint64)


def _edges(shard: ShardStore, direction: int) -> Iterator[tuple[int, int, int, int]]:
    graphs, predicates = shard.store.label_pairs()
    [path] = shard._directory.glob("*.region")
    reader = native.ShardReader(str(path))
    for label, (g, p) in enumerate(zip(graphs.tolist(), predicates.tolist(), strict=True), 1):
        for vertex in reader.vertices(label, direction).tolist():
            for other in reader.neighbours(vertex, label, direction).tolist():
                yield g, p, vertex, other


def feed(cluster: SmallCluster, first: int, last: int) -> set[Quad]:
    """Push events that store two triples each, one of them again and again; returns what is stored then."""
    expected = set()
    for i in range(first, last):
        knows, number = f"<{EX}a{i}> <{EX}knows>", f'"{i}"^^<{XSD}integer>'
        cluster.push("s", i * 100 + 1, f"{knows} <{EX}b{i % 3}> .\n{knows} {number} .\n<{EX}a{i}> <{EX}at> {number} .")
        expected |= {("g", "knows", f"a{i}", f"b{i % 3}"), ("g", "knows", f"a{i}", str(i))}
    cluster.coordinator.update(
        f"INSERT DATA {{ <{EX}x{first}> <{EX}p> <{EX}y> . GRAPH <{EX}h> {{ <{EX}x> <{EX}p> 1 }} }}"
    )
    cluster.advance("s", last * 100)
    cluster.run()
    return expected | {("", "p", f"x{first}", "y"), ("h", "p", "x", "1")}


def test_stores_hold_what_the_log_says_each_its_shards(cluster: SmallCluster, tmp_path: Path):
    cluster.start_store("s0", tmp_path)
    cluster.start_store("s1", tmp_path)
    cluster.run()
    assert {name: sorted(store.shards) for name, store in cluster.stores.items()} == {"s0": [0, 2], "s1": [1, 3]}
    expected = feed(cluster, 0, 20)
    assert quads(cluster) == expected
    snapshots = {shard.store.latest() for store in cluster.stores.values() for shard in store.shards.values()}
    assert snapshots == {21}  # twenty batches and one insertion
    assert all(store.local_vts() == {EX + "s": 19} for store in cluster.stores.values())
    assert all(store.caught_up() for store in cluster.stores.values())


def test_a_store_is_ready_when_its_shards_are_loaded_and_stays_ready(cluster: SmallCluster, tmp_path: Path):
    feed(cluster, 0, 10)
    store = cluster.start_store("s0", tmp_path)
    assert store.unready == "no shards are assigned yet"
    reasons = []
    for _ in range(40):
        cluster.run(1)
        reasons.append(store.unready)
        assert (store.unready is None) == (store.prepared() == (0, 1, 2, 3)), reasons
    assert reasons[-1] is None
    cluster.start_store("s1", tmp_path)
    for _ in range(40):
        cluster.run(1)
        assert store.unready is None
    assert cluster.stores["s1"].unready is None


def test_a_store_without_shards_is_ready_only_if_there_are_enough_stores(cluster: SmallCluster, tmp_path: Path):
    names = [f"s{i}" for i in range(SHARDS + 1)]
    stores = [cluster.start_store(name, tmp_path) for name in names]
    cluster.run()
    assert sorted(len(store.shards) for store in stores) == [0, 1, 1, 1, 1]
    assert [store.unready for store in stores] == [None] * len(stores)


def test_a_store_that_starts_late_reads_the_log_from_its_beginning(cluster: SmallCluster, tmp_path: Path):
    expected = feed(cluster, 0, 10)
    cluster.start_store("s0", tmp_path, keeps=False)
    cluster.run()
    assert quads(cluster) == expected


@pytest.mark.parametrize("saved", [False, True])
def test_a_killed_store_comes_back_and_applies_no_batch_twice(cluster: SmallCluster, tmp_path: Path, saved: bool):
    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path)
    cluster.run()
    expected = feed(cluster, 0, 10)
    if saved:
        assert all(store.checkpoint() for store in cluster.stores.values())
    expected |= feed(cluster, 10, 15)
    cluster.kill_store("s1")
    back = cluster.start_store("s1", tmp_path)
    expected |= feed(cluster, 15, 20)
    assert sorted(back.shards) == [1, 3]
    assert quads(cluster) == expected
    assert {shard.store.latest() for store in cluster.stores.values() for shard in store.shards.values()} == {23}


@pytest.mark.parametrize("saved", [False, True])
def test_shards_of_a_dead_store_move_to_a_living_one_and_back(cluster: SmallCluster, tmp_path: Path, saved: bool):
    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path)
    cluster.run()
    expected = feed(cluster, 0, 10)
    if saved:
        assert all(store.checkpoint() for store in cluster.stores.values())
    cluster.kill_store("s1")
    expected |= feed(cluster, 10, 20)
    assert sorted(cluster.stores["s0"].shards) == [0, 1, 2, 3]
    assert len(cluster.stores["s0"].followers()) == 1  # what came has caught up
    assert quads(cluster) == expected
    assert cluster.stores["s0"].checkpoint()
    cluster.start_store("s1", tmp_path)
    expected |= feed(cluster, 20, 30)
    assert {name: len(store.shards) for name, store in cluster.stores.items()} == {"s0": 2, "s1": 2}
    assert quads(cluster) == expected


@pytest.mark.parametrize("saved", [False, True])
def test_what_is_removed_stays_removed_when_stores_come_back(cluster: SmallCluster, tmp_path: Path, saved: bool):
    def update(text: str) -> None:
        cluster.coordinator.update(f"PREFIX : <{EX}> {text}")

    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path)
    cluster.run()
    expected = feed(cluster, 0, 10)
    update(
        "DELETE DATA { GRAPH :g { :a3 :knows :b0, 3 . :a4 :knows :b1, :none } :x0 :p :y } ; INSERT DATA { :a3 :was :b0 }"
    )
    cluster.run()
    expected -= {
        ("g", "knows", "a3", "b0"),
        ("g", "knows", "a3", "3"),
        ("g", "knows", "a4", "b1"),
        ("", "p", "x0", "y"),
    }
    expected |= {("", "was", "a3", "b0")}
    assert quads(cluster) == expected
    if saved:
        assert all(store.checkpoint() for store in cluster.stores.values())
    update("INSERT DATA { GRAPH :g { :a3 :knows :b0 } } ; DELETE DATA { GRAPH :g { :a5 :knows :b2 } :a3 :was :b0 }")
    cluster.kill_store("s1")
    cluster.start_store("s1", tmp_path)
    expected |= {("g", "knows", "a3", "b0")} | feed(cluster, 10, 15)
    expected -= {("g", "knows", "a5", "b2"), ("", "was", "a3", "b0")}
    assert quads(cluster) == expected
    assert {shard.store.latest() for store in cluster.stores.values() for shard in store.shards.values()} == {19}
    cluster.kill_store("s1")
    cluster.run()
    assert sorted(cluster.stores["s0"].shards) == [0, 1, 2, 3]
    assert quads(cluster) == expected, "also in the store that takes over"


class Held(Executor):
    """A loading thread that does each call when the test says so."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], Callable[[], Any]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run(self) -> None:
        for future, call in self.calls:
            if future.set_running_or_notify_cancel():
                future.set_result(call())
        self.calls.clear()


@pytest.fixture
def loading(cluster: SmallCluster, tmp_path: Path) -> Iterator[tuple[Store, Held]]:
    """A store that has two shards, and loads the other two of a store that has died."""
    store, _ = cluster.start_store("s0", tmp_path), cluster.start_store("s1", tmp_path)
    store._openings = ShardOpenings(store._open_shard, held := Held())
    cluster.run(3)
    held.run()
    cluster.run()
    assert sorted(store.shards) == [0, 2]
    cluster.kill_store("s1")
    cluster.run()
    assert len(held.calls) == 2
    yield store, held
    held.run()


def test_a_store_follows_the_log_while_it_loads_a_shard(cluster, loading):
    store, held = loading
    before = store.followers()[0].step
    expected = feed(cluster, 0, 5)
    assert store.followers()[0].step > before
    assert sorted(store.shards) == [0, 2]
    assert store.prepared() == (0, 2)
    assert not store.caught_up()
    held.run()
    expected |= feed(cluster, 5, 10)
    assert sorted(store.shards) == [0, 1, 2, 3]
    assert store.caught_up()
    assert quads(cluster) == expected


@pytest.mark.parametrize("begun", [False, True])
def test_a_shard_that_is_reassigned_during_its_load_is_withdrawn(cluster, loading, tmp_path, begun):
    """Shard 3 of the two: the store keeps an equal part."""
    store, held = loading
    if begun:
        assert all(future.set_running_or_notify_cancel() for future, _ in held.calls)
    cluster.start_store("s1", tmp_path)
    expected = feed(cluster, 0, 10)
    if begun:
        for future, call in held.calls:
            future.set_result(call())
        held.calls.clear()
    held.run()
    cluster.run()
    assert sorted(store.shards) == [0, 1]
    assert quads(cluster) == expected
    assert sorted(path.name[0] for path in (tmp_path / "regions" / "s0").iterdir() if any(path.iterdir())) == ["0", "1"]


def test_a_shard_whose_log_cannot_be_read_is_opened_again(cluster, loading, monkeypatch):
    store, held = loading
    reader, failures = cluster.log.reader, [TransientError("unavailable"), TransientError("unavailable")]

    def fail(positions: Any) -> Any:
        if failures:
            raise failures.pop()
        return reader(positions)

    monkeypatch.setattr(cluster.log, "reader", fail)
    for future, call in held.calls:
        with pytest.raises(TransientError) as found:
            call()
        future.set_exception(found.value)
    held.calls.clear()
    store.step()
    store.step()
    assert store.last_error == "unavailable"
    store.step()
    held.run()
    cluster.run()
    assert sorted(store.shards) == [0, 1, 2, 3]


def test_a_step_of_a_store_is_short(cluster: SmallCluster, tmp_path: Path, monkeypatch):
    """A store that reads a long log serves its other shards in between. Here each record takes all the time of a step."""
    store = cluster.start_store("s0", tmp_path)
    cluster.run()
    cluster.paused.append(store)
    expected = feed(cluster, 0, 20)
    monkeypatch.setattr(follower, "READ_MS", 0)
    [only] = store.followers()
    steps = [only.step]
    while not store.caught_up() or steps[-1] == steps[0]:
        store.step()
        steps.append(only.step)
    assert max(later - earlier for earlier, later in pairwise(steps)) == 1
    assert steps[-1] - steps[0] > 20
    assert quads(cluster) == expected


def test_a_checkpoint_takes_the_place_of_those_of_earlier_stores(cluster: SmallCluster, tmp_path: Path):
    cluster.start_store("s0", tmp_path)
    cluster.run()
    feed(cluster, 0, 5)
    assert cluster.stores["s0"].checkpoint()
    cluster.kill_store("s0")
    cluster.start_store("s1", tmp_path)
    cluster.run()
    assert {path.name for path in (tmp_path / "checkpoints").glob("shard-*/*")} == {"s0"}
    feed(cluster, 5, 6)
    assert cluster.stores["s1"].checkpoint()
    assert {path.name for path in (tmp_path / "checkpoints").glob("shard-*/*")} == {"s1"}


def test_a_store_that_was_cut_off_neither_removes_newer_checkpoints_nor_ends_its_own(
    cluster: SmallCluster, tmp_path: Path
):
    cut_off = cluster.start_store("s0", tmp_path)
    cluster.run()
    feed(cluster, 0, 5)
    assert cut_off.checkpoint()
    del cluster.stores["s0"]  # it lives, and stands still
    cluster.start_store("s1", tmp_path)
    cluster.run()
    feed(cluster, 5, 10)
    folders = tmp_path / "checkpoints" / "shard-1"
    assert cluster.stores["s1"].checkpoint()
    assert [path.name for path in folders.iterdir()] == ["s1"]
    assert cut_off.checkpoint()
    assert sorted(path.name for path in folders.iterdir()) == ["s0", "s1"]
    found = ShardCheckpoints(tmp_path / "checkpoints", "s2", SHARDS).last(1)
    assert found is not None
    assert found[0].is_relative_to(folders / "s1")
    cut_off.close()


def test_a_damaged_checkpoint_is_an_error(cluster: SmallCluster, tmp_path: Path):
    cluster.start_store("s0", tmp_path)
    cluster.run()
    feed(cluster, 0, 5)
    assert cluster.stores["s0"].checkpoint()
    [state] = (tmp_path / "checkpoints" / "shard-1").glob("s0/checkpoint-*/state.json")
    state.write_text(state.read_text().replace('"step"', '"stop"'))
    with pytest.raises(StorageError, match="corrupt"):
        ShardCheckpoints(tmp_path / "checkpoints", "s0", SHARDS).last(1)


def test_logs_go_when_queries_and_leases_need_them_no_more(cluster: SmallCluster, tmp_path: Path):
    store = cluster.start_store("s0", tmp_path)
    cluster.run()
    feed(cluster, 0, 5)

    def retained() -> int:
        return sum(shard.store.log_bytes() for shard in store.shards.values())

    assert retained() == 0  # no query reads the past
    granted, epochs = store.leases.grant("reader", 1 << 31, 60_000)
    assert granted == 6
    assert epochs.keys() == store.shards.keys()
    feed(cluster, 5, 10)
    assert retained() > 0
    assert store.leases.grant("reader", 6, 60_000)[0] == 6
    store.leases.leave("reader")
    feed(cluster, 10, 11)
    assert retained() == 0
    with pytest.raises(StorageError, match="cannot be read any more"):
        store.leases.grant("reader", 6, 60_000)
    cluster.coordinator.register("q", OVER_S)
    cluster.run()
    cluster.kill("e0")  # nobody evaluates: what is due stays readable
    feed(cluster, 11, 20)
    assert retained() > 0


def test_stored_tuples_of_a_dropped_stream_have_a_bound_while_a_query_may_read_the_earlier_graph(
    cluster: SmallCluster, tmp_path: Path
):
    store = cluster.start_store("s0", tmp_path)
    cluster.coordinator.declare(EX + "t", "t", batch_ms=100)
    cluster.coordinator.register("q", OVER_S)
    cluster.advance("s", 1_000)
    cluster.run()
    cluster.kill("e0")  # nobody evaluates
    cluster.push("t", 1, f"<{EX}a> <{EX}p> <{EX}b> .")
    cluster.advance("t", 1_000)
    feed(cluster, 10, 20)
    cluster.coordinator.drop(EX + "t")
    cluster.run()
    [follower] = store.followers()
    assert [number for _, number, _ in follower.graph.gone] == [2]
    assert store.checkpoint()
    cluster.kill_store("s0")
    store = cluster.start_store("s0", tmp_path)
    cluster.run()
    [follower] = store.followers()
    assert [number for _, number, _ in follower.graph.gone] == [2]
    cluster.start_engine("e1")
    feed(cluster, 20, 40)
    [follower] = store.followers()
    assert follower.graph.gone == []


@pytest.mark.parametrize("published", [False, True])
def test_a_derived_stream_ends_before_or_after_its_first_batch(cluster: SmallCluster, tmp_path: Path, published: bool):
    store = cluster.start_store("s0", tmp_path)
    body = f"CONSTRUCT {{ ?x <{EX}q> ?o }} FROM STREAM <{EX}s> [RANGE 1s STEP 1s] WHERE {{ ?x <{EX}at> ?o }}"
    cluster.coordinator.register(EX + "d", f"REGISTER STREAM <{EX}d> AS {body}")
    cluster.run()
    expected = feed(cluster, 0, 20) if published else set()
    cluster.coordinator.stop(EX + "d")
    cluster.run()
    expected |= feed(cluster, 20, 40)
    assert {quad for quad in quads(cluster) if quad[1] != "q"} == expected
    assert store.caught_up()
