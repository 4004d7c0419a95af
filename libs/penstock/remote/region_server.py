"""What a node lets others read, and the server that answers them."""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.errors import DataPlaneError

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.remote.connecting import Transport

_log = logging.getLogger(__name__)


class RegionKind(IntEnum):
    """What lies in a region; `subject` of its entry is then the number of the shard or stream."""

    SHARD = 1
    SLICES = 2
    OTHER = 3


def _regions(transport: Transport, rdma_device: str) -> native.ServedRegions:
    if transport in ("auto", "rdma"):
        try:
            return native.ServedRegions(rdma_device)
        except DataPlaneError as error:
            level = logging.WARNING if transport == "rdma" else logging.INFO
            _log.log(level, "data plane: others read this node over TCP: %s", error)
    return native.ServedRegions()


class Server:
    """A node's regions, and the native thread that answers reads of them over TCP.

    Everybody who holds `secret` (16 bytes or more) may read all of them, and nobody can write. Files that are published
    may grow but never shrink. `port` 0 takes a free one. With "auto" and "rdma", stable regions can be read by RDMA too
    where there is a device (`rdma_device`, or the first that can be used). Raises StorageError where the address cannot
    be had.
    """

    def __init__(
        self,
        host: str,
        port: int,
        secret: bytes,
        *,
        connections: int = 256,
        transport: Transport = "auto",
        rdma_device: str = "",
    ) -> None:
        self._regions = _regions(transport, rdma_device)
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
