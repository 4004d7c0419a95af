"""The cost of reads from another node over TCP, and of a READ over RDMA, with a projection to real hardware.

Rates over TCP are by the processor time of the node's thread, of the engine's thread, and of both, since this machine's
cores serve both sides. Reads are at random places of a region larger than the caches, and every word is checked. RDMA
needs a device. A virtual machine with an emulated one runs this by `tools/rdma_vm/boot.sh env PYTHONPATH=libs:. python
-m benchmarks.macro.dataplane`; its figures say nothing about hardware.
"""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness import Row, WrongAnswerError
from penstock.cli.app import main
from penstock.core import _native as native
from penstock.remote import Server, connect
from penstock.remote.tls import PeerTls
from penstock.term_ids.peer_certificates import PeerCertificates

if TYPE_CHECKING:
    from collections.abc import Iterator

COMMAND = "python -m benchmarks dataplane"
SECRET = b"the secret of a benchmark"
REGION_WORDS = 1 << 25  # 256 MiB
BUCKET = 128  # bytes: one look-up of a key (docs/store-layout.md)
LIST = 1 << 20
READ_US = 2.0  # the target on hardware (ADR 15); so many of one doorbell:
DOORBELL = 32
IN_FLIGHT = 16  # READs of one queue pair that devices keep on their way


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield rows for key reads and long lists over TCP, and for RDMA if there is a device."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        path = Path(folder) / "region"
        words = 1 << 18 if tiny else REGION_WORDS
        np.arange(words, dtype=np.uint64).tofile(path)
        server = Server("127.0.0.1", 0, SECRET)
        server.publish(path, reserve_bytes=8 * words, stable=True)
        yield from _tcp(server, words, 1 if tiny else 60)
        yield from _tls(Path(folder), server, words, 1 if tiny else 30)
        if native.rdma_devices():
            yield from _rdma(server, words, 3 if tiny else 100)


class _Reader:
    """Reads one length at random places, and checks the words."""

    def __init__(self, plane: native.Plane, words: int, length: int, batch: int) -> None:
        self._plane = plane
        self._all = words
        self._words = length // 8
        self._batch = batch
        self._random = np.random.default_rng(1)
        self._lengths = np.full(batch, length, dtype=np.uint32)
        self._regions = np.zeros(batch, dtype=np.uint32)

    def read(self) -> tuple[float, float]:
        """Read one batch. Returns the seconds of wall time and of this thread's processor time."""
        place = self._random.integers(0, self._all // self._words, self._batch, dtype=np.uint64)
        first = place * np.uint64(self._words)
        wall, cpu = time.perf_counter(), time.thread_time()
        words = self._plane.read(1, self._regions, first * np.uint64(8), self._lengths)
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
        expected = first[:, None] + np.arange(self._words, dtype=np.uint64)
        if not np.array_equal(words.reshape(self._batch, self._words), expected):
            raise WrongAnswerError("a read brought other words")
        return wall, cpu

    def spent(self, batches: int, server: Server) -> tuple[float, float]:
        """Return the processor seconds of the node's thread and of this one: the best of five runs."""
        self.read()
        runs = []
        for _ in range(5):
            before = server.counters()["cpu_nanos"]
            ours = sum(self.read()[1] for _ in range(batches))
            runs.append(((server.counters()["cpu_nanos"] - before) / 1e9, ours))
        return min(runs, key=sum)

    def median_us(self, batches: int) -> float:
        """Return the median wall time of one batch in µs. (A READ consists of waiting.)"""
        return float(np.median([self.read()[0] for _ in range(batches)])) * 1e6


def _tcp(server: Server, words: int, batches: int) -> Iterator[Row]:
    plane = connect(1, "127.0.0.1", server.port, SECRET, "tcp")
    batch = 1024
    node, engine = _Reader(plane, words, BUCKET, batch).spent(batches, server)
    reads = batch * batches
    yield _rate("TCP, key reads of 128 bytes, 1,024 a batch, per core of the node", reads / node, "reads/s", 5e5)
    yield _rate("TCP, the same, per core of the engine", reads / engine, "reads/s", 5e5)
    yield _rate("TCP, the same, both sides on one core", reads / (node + engine), "reads/s", 5e5)
    batch, batches = 4, max(1, batches // 2)
    node, engine = _Reader(plane, words, min(LIST, 8 * words), batch).spent(batches, server)
    moved = batch * batches * min(LIST, 8 * words) / 1e9
    yield _rate("TCP, lists of 1 MiB, per core of the node", moved / node, "GB/s", 1.0)
    yield _rate("TCP, the same, per core of the engine", moved / engine, "GB/s", 1.0)


def _tls(folder: Path, plain: Server, words: int, batches: int) -> Iterator[Row]:
    """Reads over TLS, and their rate as a ratio to that without; runs of both alternate."""
    with contextlib.redirect_stdout(io.StringIO()):
        main(["certificates", str(folder / "tls"), "--host", "127.0.0.1"])
    tls = PeerTls(PeerCertificates(*(folder / "tls" / name for name in ("ca.crt", "tls.crt", "tls.key"))))
    encrypted = Server("127.0.0.1", 0, SECRET, tls=tls)
    encrypted.publish(folder / "region", reserve_bytes=8 * words, stable=True)
    planes = [(plain, connect(1, "127.0.0.1", plain.port, SECRET, "tcp"))]
    planes.append((encrypted, connect(1, "127.0.0.1", encrypted.port, SECRET, "tcp", tls=tls)))
    for name, length, batch, unit, per in (
        ("key reads of 128 bytes, 1,024 a batch", BUCKET, 1024, "reads/s", 1.0),
        ("lists of 1 MiB", min(LIST, 8 * words), 4, "GB/s", min(LIST, 8 * words) / 1e9),
    ):
        best = [float("inf"), float("inf")]
        for _ in range(3):
            for side, (server, plane) in enumerate(planes):
                best[side] = min(best[side], sum(_Reader(plane, words, length, batch).spent(batches, server)))
        rate = batch * batches * per / best[1]
        yield Row(f"TLS, {name}, both sides on one core", rate, unit, COMMAND, lower_is_better=False, clock="cpu")
        ratio = best[0] / best[1]
        yield Row(f"TLS, {name}: ratio to TCP", ratio, "", COMMAND, target=0.6, lower_is_better=False, clock="cpu")


def _rate(name: str, value: float, unit: str, target: float) -> Row:
    return Row(name, value, unit, COMMAND, target=target, lower_is_better=False, clock="cpu")


def _rdma(server: Server, words: int, repeats: int) -> Iterator[Row]:
    plane = connect(1, "127.0.0.1", server.port, SECRET, "rdma")
    for length in (64, 4096, 65536):
        one = _Reader(plane, words, length, 1).median_us(repeats)
        yield Row(f"RDMA here, one READ of {length:,} bytes", one, "µs", COMMAND, clock="wall")
    many = _Reader(plane, words, BUCKET, DOORBELL).median_us(repeats) / DOORBELL
    yield Row("RDMA here, a READ of 128 bytes, 32 a doorbell", many, "µs", COMMAND, clock="wall")
    trips = DOORBELL / IN_FLIGHT  # rounds of READ_US for the READs of one doorbell
    yield Row(
        "RDMA on hardware, projected: READs of one queue pair", DOORBELL / (trips * READ_US) * 1e6, "reads/s", COMMAND
    )


if __name__ == "__main__":
    for row in run():
        print(f"{row.name}: {row.value:,.4g} {row.unit}")
