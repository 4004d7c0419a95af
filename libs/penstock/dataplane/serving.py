"""What a node lets others read, and the server that answers them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from penstock.store import _native as native

if TYPE_CHECKING:
    from pathlib import Path


class RegionKind(IntEnum):
    """What lies in a region; `subject` of its entry is then the number of the shard or stream."""

    SHARD = 1
    SLICES = 2
    OTHER = 3


class Server:
    """A node's regions, and the native thread that answers reads of them over TCP.

    Everybody who holds `secret` (16 bytes or more) may read all of them, and nobody can write. Files that are published
    may grow but never shrink. `port` 0 takes a free one. Raises StorageError where the address cannot be had.
    """

    def __init__(self, host: str, port: int, secret: bytes, *, connections: int = 256) -> None:
        self._regions = native.ServedRegions()
        self._server = native.DataPlaneServer(self._regions, host, port, secret, connections=connections)

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.port

    def publish(
        self,
        path: Path | str,
        kind: RegionKind = RegionKind.OTHER,
        *,
        subject: int = 0,
        epoch: int = 0,
        reserve_bytes: int = 0,
        stable: bool = False,
    ) -> int:
        """Let others read that file from now on; return its number, which is never given again.

        `reserve_bytes` is how large it may become. `stable` says that its pages stay for as long as it is published (no
        hole is ever punched into it), so that it can be registered for RDMA. `epoch` of a shard is its header's.
        """
        return self._regions.publish(str(path), int(kind), subject, epoch, reserve_bytes, stable)

    def withdraw(self, number: int) -> None:
        """Fail further reads of that region with "retired"."""
        self._regions.withdraw(number)

    def directory(self) -> list[native.RegionEntry]:
        """All that is published."""
        return self._regions.directory()

    def counters(self) -> dict[str, int]:
        """Connections ever and open, reads and their bytes, failures sent, the thread's processor time in ns."""
        return self._server.counters()
