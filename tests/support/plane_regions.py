"""Region files in which every word's value follows from its place, and a node that serves them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.cli.app import main
from penstock.remote import Server
from penstock.remote.tls import PeerTls
from penstock.term_ids.peer_certificates import PeerCertificates

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.core import _native as native

SECRET = b"the secret of a test, long enough"


def words(seed: int, start: int, count: int) -> np.ndarray:
    """Return `count` words of the region with that seed, from word `start`."""
    index = np.arange(start, start + count, dtype=np.uint64)
    return (index + np.uint64(seed << 40)) * np.uint64(0x9E3779B97F4A7C15)


def rdma_device(side: str) -> str:
    """Return the RDMA device of a side ("node", or the engine's), from $PENSTOCK_RDMA_DEVICES; "" is the first device."""
    names = os.environ.get("PENSTOCK_RDMA_DEVICES", "").split(",")
    return names[0 if side == "node" else -1]


def peer_certificates(directory: Path, name: str = "tls", *hosts: str) -> PeerCertificates:
    """A certificate that the directory's CA has signed, both made if they are missing."""
    if not (directory / f"{name}.crt").exists():
        named = [part for host in hosts or ("127.0.0.1", "localhost") for part in ("--host", host)]
        assert main(["certificates", str(directory), "--name", name, *named]) == 0
    return PeerCertificates(directory / "ca.crt", directory / f"{name}.crt", directory / f"{name}.key")


def peer_tls(directory: Path, name: str = "tls", *hosts: str) -> PeerTls:
    return PeerTls(peer_certificates(directory, name, *hosts))


class Node:
    """A server, and the regions that it publishes. The number of a region is its seed."""

    def __init__(self, directory: Path, host: str = "127.0.0.1", **options: Any) -> None:
        self.directory = directory
        self.host = host
        self.server = Server(host, 0, SECRET, rdma_device=rdma_device("node"), **options)

    def add(self, count: int, *, stable: bool = True) -> int:
        """Publish a region of `count` words, and return its number."""
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
    """Return the words of some reads (region, first word, number of words), in order."""
    regions, starts, counts = (np.array(column) for column in zip(*reads, strict=True))
    return plane.read(
        node, regions.astype(np.uint32), starts.astype(np.uint64) * np.uint64(8), (counts * 8).astype(np.uint32)
    )


def expected(reads: list[tuple[int, int, int]]) -> np.ndarray:
    return np.concatenate([words(*read) for read in reads])
