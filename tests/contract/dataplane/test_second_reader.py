"""A second implementation of the layout's reader and of the data plane's client finds what the native store holds."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.doctor import Level, rdma_devices
from penstock.remote import RegionKind
from support.plane_client import PlaneClient, RefusedError
from support.plane_regions import SECRET, Node, rdma_device
from support.region_reader import IN, OUT, RegionReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

VERTICES, LABELS, EDGES = 300, 100, 12_000
Edges = dict[tuple[int, int, int], list[int]]


class StoredShard:
    """A native store with one shard, in a region that a server publishes, and its edges as they should be."""

    def __init__(self, node: Node, *, publish_logs: bool) -> None:
        self.store = native.Store(str(node.directory), 1, publish_logs=publish_logs)
        self.path = node.directory / "shard-0.region"
        epoch = native.ShardReader(str(self.path)).epoch()
        self.number = node.server.publish(self.path, RegionKind.SHARD, epoch=epoch, reserve_bytes=1 << 36, stable=True)
        self.edges: set[tuple[int, int, int]] = set()

    def commit(self, removed: list[tuple[int, int, int]], added: list[tuple[int, int, int]]) -> None:
        """Commit edges (subject, predicate, object) of the default graph."""
        if removed:
            self.store.change(columns(removed), columns(added))
        else:
            self.store.commit(*columns(added))
        self.edges = (self.edges - set(removed)) | set(added)

    def lists(self) -> Edges:
        """Return each list that there should be, by vertex, label and direction, without order."""
        found: Edges = defaultdict(list)
        for s, p, o in self.edges:
            label = self.store.label(0, p)
            found[s, label, OUT].append(o)
            found[o, label, IN].append(s)
        return found


def columns(edges: list[tuple[int, int, int]]) -> tuple[np.ndarray, ...]:
    parts = np.array(edges, dtype=np.uint64).reshape(-1, 3)
    return parts[:, 0].copy(), parts[:, 1].copy(), parts[:, 2].copy(), np.zeros(len(parts), dtype=np.uint64)


@pytest.fixture(params=["with append logs", "with removals", "with append logs and removals"])
def shard(node: Node, request: pytest.FixtureRequest) -> StoredShard:
    """Hubs with more labels than a record's scan, long and short lists, several commits, removed and restored edges."""
    rng = random.Random(77)
    made = StoredShard(node, publish_logs="append logs" in request.param)
    edges = {
        (
            rng.randint(1, VERTICES) if rng.random() < 0.7 else 1,
            1_000 + rng.randint(0, LABELS - 1),
            rng.randint(1, VERTICES),
        )
        for _ in range(EDGES)
    }
    everything = sorted(edges)
    rng.shuffle(everything)
    for i in range(0, len(everything), 2_500):
        made.commit([], everything[i : i + 2_500])
    if "removals" in request.param:
        made.commit(everything[::7], [])
        made.commit([], everything[::14])
    return made


@pytest.fixture
def read(shard: StoredShard, node: Node, transport: str) -> Iterator[Callable[[int, int], bytes]]:
    """A function that reads the shard's region: its file, over TCP, or by RDMA with pyverbs."""
    if transport == "tls":
        pytest.skip("the second reader knows the protocol without TLS")
    if transport == "shm":
        with shard.path.open("rb") as file:
            yield lambda offset, length: os.pread(file.fileno(), length, offset)
        return
    client = PlaneClient(node.host, node.server.port, SECRET)
    [region] = [each for each in client.regions() if each.number == shard.number]
    assert (region.path, region.stable) == (str(shard.path), True)
    if transport == "tcp":
        yield lambda offset, length: client.read(shard.number, offset, length)
    else:
        from support.verbs_reader import VerbsReader  # noqa: PLC0415 - pyverbs is Debian's

        device = rdma_device("engine") or native.rdma_devices()[0]
        reader = VerbsReader(client, device)
        yield lambda offset, length: reader.read(shard.number, offset, length)
    client.close()


def test_a_second_reader_finds_every_list(
    shard: StoredShard, read: Callable[[int, int], bytes], transport: str
) -> None:
    reader = RegionReader(read)
    lists = shard.lists()
    assert reader.edges == len(shard.edges)
    assert len({label for _, label, _ in lists}) == LABELS
    chosen = sorted(lists) if transport != "rdma" else random.Random(1).sample(sorted(lists), 200)  # it is emulated
    for key in chosen:
        assert sorted(reader.neighbours(*key)) == sorted(lists[key]), key
    native_reader = native.ShardReader(str(shard.path))
    for label in sorted({label for _, label, _ in lists})[:10]:
        for direction in (OUT, IN):
            vertices = {key[0] for key in lists if key[1:] == (label, direction)}
            assert sorted(reader.vertices(label, direction)) == sorted(vertices)
            assert set(native_reader.vertices(label, direction).tolist()) == vertices
    assert reader.neighbours(VERTICES + 1, 1, OUT) == []


def test_a_second_client_with_another_secret_is_refused(node: Node) -> None:
    with pytest.raises(RefusedError, match="another secret"):
        PlaneClient(node.host, node.server.port, SECRET[::-1])


def test_keys_permit_no_other_memory_and_last_as_long_as_the_region_is_published(
    shard: StoredShard, node: Node, transport: str
) -> None:
    if transport != "rdma":
        pytest.skip("only RDMA has keys")
    from support.verbs_reader import VerbsReader  # noqa: PLC0415

    client = PlaneClient(node.host, node.server.port, SECRET)
    [part, *_] = client.keys(shard.number)
    reader = VerbsReader(client, rdma_device("engine") or native.rdma_devices()[0])
    assert reader.read(shard.number, 0, 4096) == shard.path.read_bytes()[:4096]
    with pytest.raises(PermissionError):
        reader._read(part.address + part.end + (1 << 30), part.key, 8)
    node.server.withdraw(shard.number)
    with pytest.raises(RefusedError, match="withdrawn"):
        client.keys(shard.number)
    client.close()


def test_doctor_reads_through_the_device(transport: str) -> None:
    if transport != "rdma":
        pytest.skip("only RDMA has devices")
    device = rdma_device("engine") or native.rdma_devices()[0]
    [finding] = rdma_devices.devices(device)
    assert (finding.level, finding.check) == (Level.ok, "rdma device")
    assert f"{device}, Ethernet: GID 0000:0000:0000:0000:0000:ffff:" in finding.text
    assert "READ of 64 bytes to itself" in finding.text
    assert list(rdma_devices.devices("absent")) == []
