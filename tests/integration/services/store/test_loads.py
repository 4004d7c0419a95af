"""Prepared loads through the log: one commit of whoever holds the graph, visible at once, wherever its files were."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from integration.services.store.test_store import EX, SHARDS, feed, quads
from penstock.errors import DataError, LimitError, StorageError
from penstock.replication.load_files import Manifest
from support.loads import prepared
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COUNT = "SELECT (COUNT(*) AS ?n) { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"
N = 200
QUADS = [
    (EX + "g" if i % 4 == 0 else "", f"{EX}s{i % 50}", f"{EX}p{i % 3}", f"{EX}o{i}") for i in range(N)
]  # what is stored in EX + "g" meets what the stream of test_store absorbs


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    made = SmallCluster(engines=1, shards=SHARDS)
    made.coordinator.declare(EX + "s", "s", batch_ms=100, timing=(EX + "at",), absorb_into=EX + "g")
    yield made
    made.close()


@pytest.fixture
def manifest(cluster: SmallCluster, tmp_path: Path) -> Manifest:
    return prepared(tmp_path / "files", QUADS, cluster.terms, SHARDS)


def named(found: list[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
    """As `quads` tells them: graph, predicate, subject, object."""
    short = [tuple(name.removeprefix(EX) for name in quad) for quad in found]
    return {(g, p, s, o) for g, s, p, o in short}


def count(cluster: SmallCluster, engine: str = "e0") -> int:
    (row,) = cluster.engines[engine].one_shot.query(COUNT, None, None, None)
    return int(row["n"])


def test_stores_and_engines_add_a_load_to_their_data(cluster: SmallCluster, manifest: Manifest, tmp_path: Path):
    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path)
    cluster.run()
    expected = feed(cluster, 0, 5)
    assert cluster.coordinator.load_files(manifest) == N
    cluster.run()
    expected |= named(QUADS)
    assert quads(cluster) == expected
    assert count(cluster) == len(expected)
    expected |= feed(cluster, 5, 10)
    assert quads(cluster) == expected
    assert count(cluster) == len(expected)
    snapshots = {shard.store.latest() for store in cluster.stores.values() for shard in store.shards.values()}
    assert snapshots == {13}  # ten batches, two insertions, one load


def test_an_engine_over_stores_counts_a_load_and_reads_it_there(tmp_path: Path):
    cluster = SmallCluster(engines=1, shards=SHARDS, reads="shm")
    cluster.coordinator.declare(EX + "s", "s", batch_ms=100, timing=(EX + "at",), absorb_into=EX + "g")
    for name in ("s0", "s1"):
        cluster.start_store(name, tmp_path)
    cluster.run()
    expected = feed(cluster, 0, 5)
    cluster.coordinator.load_files(prepared(tmp_path / "files", QUADS, cluster.terms, SHARDS))
    cluster.run()
    expected |= named(QUADS)
    assert count(cluster) == len(expected)
    expected |= feed(cluster, 5, 10)
    assert count(cluster) == len(expected)
    cluster.close()


def test_a_load_that_is_stored_twice_is_stored_once(cluster: SmallCluster, manifest: Manifest, tmp_path: Path):
    cluster.start_store("s0", tmp_path)
    for _ in range(2):
        cluster.coordinator.load_files(manifest)
        cluster.run()
    assert quads(cluster) == named(QUADS)
    assert count(cluster) == N


def test_nothing_of_a_load_is_seen_before_its_last_file(cluster: SmallCluster, manifest: Manifest):
    cluster.coordinator.load_files(manifest)
    engine, found = cluster.engines["e0"], []
    for _ in range(len(manifest.files) + 5):
        engine.step()
        found.append(count(cluster))
    assert set(found) == {0, N}
    assert found == sorted(found)
    assert found.count(0) > len(manifest.files) // 3  # it took some steps, between which others had their turn


def test_what_is_due_before_a_load_does_not_see_it(cluster: SmallCluster, manifest: Manifest):
    """The engine that evaluates it is already behind the load: its view leaves the load out."""
    cluster.coordinator.register(
        "q",
        f"SELECT (COUNT(*) AS ?n) FROM <urn:x-penstock:stored> FROM STREAM <{EX}s> [RANGE PT1S STEP PT1S] "
        f"WHERE {{ ?s <{EX}p1> ?o }}",
    )
    cluster.advance("s", 1_000)
    cluster.run()
    cluster.kill("e0")
    cluster.push("s", 1_001, f"<{EX}a> <{EX}at> 1 .")
    cluster.advance("s", 3_000)
    cluster.coordinator.step()
    for _ in range(4):
        cluster.adaptor.step()
        cluster.dispatcher.step()
    cluster.coordinator.load_files(manifest)
    cluster.start_engine("e1")
    cluster.run(200)
    cluster.advance("s", 4_000)
    cluster.run()
    answers = {line["time"]: int(line["results"]["bindings"][0]["n"]["value"]) for line in cluster.results()}
    loaded = len({quad for quad in QUADS if quad[2] == EX + "p1" and not quad[0]})
    assert answers == {2_000: 0, 3_000: 0, 4_000: loaded}


def test_an_engine_that_reads_the_log_again_reads_the_files_again(cluster: SmallCluster, manifest: Manifest):
    cluster.coordinator.load_files(manifest)
    cluster.run()
    cluster.start_engine("e1")
    cluster.run()
    assert count(cluster, "e1") == N


def test_a_store_waits_for_files_that_are_unavailable(cluster: SmallCluster, manifest: Manifest, tmp_path: Path):
    cluster.start_store("s0", tmp_path)
    cluster.run()
    cluster.coordinator.load_files(manifest)
    (tmp_path / "files").rename(tmp_path / "moved")
    cluster.run()
    assert count(cluster) == 0
    for service in (cluster.engines["e0"], cluster.stores["s0"]):
        assert "cannot be read" in str(service.last_error)
    (tmp_path / "moved").rename(tmp_path / "files")
    cluster.run()
    assert count(cluster) == N
    assert quads(cluster) == named(QUADS)


def test_a_file_that_differs_from_the_loaded_one_is_never_applied(
    cluster: SmallCluster, manifest: Manifest, tmp_path: Path
):
    cluster.coordinator.load_files(manifest)
    damaged = tmp_path / "files" / manifest.files[3].name
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(StorageError, match="checksum"):
        cluster.run()


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("files", [0, 1, 4, 9])
def test_a_store_that_is_killed_in_a_load_comes_back_with_all_of_it(
    cluster: SmallCluster, manifest: Manifest, tmp_path: Path, files: int, saved: bool
):
    store = cluster.start_store("s0", tmp_path)
    cluster.run()
    expected = feed(cluster, 0, 5)
    if saved:
        assert store.checkpoint()
    cluster.coordinator.load_files(manifest)
    for _ in range(files):
        store.step()
        assert files > 8 or not store.checkpoint()  # not in the middle
    cluster.kill_store("s0")
    cluster.start_store("s0", tmp_path)
    cluster.run()
    assert quads(cluster) == expected | named(QUADS)
    store = cluster.stores["s0"]
    assert store.checkpoint()
    cluster.kill_store("s0")
    (tmp_path / "files").rename(tmp_path / "gone")  # nobody needs them any more
    cluster.start_store("s0", tmp_path)
    cluster.run()
    assert quads(cluster) == expected | named(QUADS)


def test_manifests_that_cannot_be_loaded_are_refused_and_change_nothing(cluster: SmallCluster, manifest: Manifest):
    first, *others = manifest.files
    missing = dataclasses.replace(first, name="nothing.parquet")
    for wrong, message in (
        (dataclasses.replace(manifest, files=(missing, *others)), "cannot find it"),
        (dataclasses.replace(manifest, files=(first, first, *others)), "same bin"),
        (dataclasses.replace(manifest, pieces=1), "not made for 4 shards"),
        (dataclasses.replace(manifest, folder="no-such-scheme://x"), "not a folder"),
    ):
        with pytest.raises(DataError, match=message):
            cluster.coordinator.load_files(wrong)
    many = dataclasses.replace(manifest, files=manifest.files * 10_000)
    with pytest.raises(LimitError, match="files"):
        cluster.coordinator.load_files(many)
    cluster.run()
    assert count(cluster) == 0
    assert cluster.coordinator.load_files(Manifest.of_json(manifest.to_json())) == N
    cluster.run()
    assert count(cluster) == N


def test_a_graph_that_came_with_a_load_is_known_to_queries(cluster: SmallCluster, manifest: Manifest):
    cluster.coordinator.load_files(manifest)
    text = f"SELECT ?o FROM STREAM <{EX}s> [RANGE PT1S STEP PT1S] WHERE {{ GRAPH <{EX}g> {{ ?s <{EX}p1> ?o }} }}"
    assert cluster.coordinator.register("q", text).name == "q"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"folder": 1}', b'{"folder": "x", "pieces": "a"}', b"\xff"])
def test_what_is_no_manifest_is_refused(data: bytes):
    with pytest.raises(DataError, match="manifest"):
        Manifest.of_json(data)
