"""Region files whose every word tells where it belongs, and a node that serves them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.remote import Server

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.core import _native as native

SECRET = b"the secret of a test, long enough"


def words(seed: int, start: int, count: int) -> np.ndarray:
    """Words start.. of the region with that seed."""
    index = np.arange(start, start + count, dtype=np.uint64)
    return (index + np.uint64(seed << 40)) * np.uint64(0x9E3779B97F4A7C15)


def rdma_device(side: str) -> str:
    """The device of the engine's or of the node's side: two of one machine where $PENSTOCK_RDMA_DEVICES names them."""
    names = os.environ.get("PENSTOCK_RDMA_DEVICES", "").split(",")
    return names[0 if side == "node" else -1]


class Node:
    """A server with regions of its own making; seed and number of a region are the same."""

    def __init__(self, directory: Path, host: str = "127.0.0.1", **options: Any) -> None:
        self.directory = directory
        self.host = host
        self.server = Server(host, 0, SECRET, rdma_device=rdma_device("node"), **options)

    def add(self, count: int, *, stable: bool = True) -> int:
        """Publish a region of so many words."""
        seed = len(list(self.directory.iterdir()))
        path = self.path(seed)
        path.write_bytes(words(seed, 0, count).tobytes())
        number = self.server.publish(path, epoch=seed, reserve_bytes=1 << 28, stable=stable)
        assert number == seed
        return number

    def path(self, seed: int) -> Path:
        return self.directory / f"region-{seed}"

    def grow(self, seed: int, start: int, count: int) -> None:
        with self.path(seed).open("ab") as file:
            file.write(words(seed, start, count).tobytes())


def read(plane: native.Plane, node: int, reads: list[tuple[int, int, int]]) -> np.ndarray:
    """Words of (region, first word, number of words), one read behind the other."""
    regions, starts, counts = (np.array(column) for column in zip(*reads, strict=True))
    return plane.read(
        node, regions.astype(np.uint32), starts.astype(np.uint64) * np.uint64(8), (counts * 8).astype(np.uint32)
    )


def expected(reads: list[tuple[int, int, int]]) -> np.ndarray:
    return np.concatenate([words(*read) for read in reads])
