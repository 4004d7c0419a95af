"""The regions that a process publishes, and the server from which other processes read these regions."""

from __future__ import annotations

import logging
from enum import IntEnum
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.errors import DataPlaneError
from penstock.remote.connecting import permits_rdma

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.remote.connecting import Transport
    from penstock.remote.tls import PeerTls

_log = logging.getLogger(__name__)


class RegionKind(IntEnum):
    """The kind of the content of a region. The `subject` in the directory entry of a shard is the number of the
    shard.
    """

    SHARD = 1
    OTHER = 2


def _regions(transport: Transport, rdma_device: str) -> native.ServedRegions:
    if transport in ("auto", "rdma"):
        try:
            return native.ServedRegions(rdma_device)
        except DataPlaneError as error:
            level = logging.WARNING if transport == "rdma" else logging.INFO
            _log.log(level, "data plane: others read this node over TCP: %s", error)
    return native.ServedRegions()


class Server:
    """The published regions of a process, and the native thread that serves reads of these regions over TCP.

    A client that holds `secret` (at least 16 bytes) can read all regions. No client can write. A published file is
    allowed to grow, but must not shrink. `port` 0 selects a free port. With the transports "auto" and "rdma", clients
    can also read stable regions over RDMA. The device is `rdma_device` or, if that is empty, the first usable device.
    StorageError if the address is not available.

    `tls`: None means no TLS. With TLS, "auto" offers RDMA only if `rdma_unencrypted` is set, because RDMA does not
    encrypt.
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
        tls: PeerTls | None = None,
        rdma_unencrypted: bool = False,
    ) -> None:
        rdma = permits_rdma(transport, tls, rdma_unencrypted=rdma_unencrypted)
        self._regions = _regions(transport if rdma else "tcp", rdma_device)
        identity = None if tls is None else tls.identity
        self._server = native.DataPlaneServer(self._regions, host, port, secret, connections=connections, tls=identity)

    @property
    def port(self) -> int:
        """The port on which the server listens."""
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
        """Publish a file as a region. Returns the number of the region. Numbers are never reused.

        `reserve_bytes`: maximum size of the file. `stable`: whether the pages of the file stay in place while the file
        is published. This means that no holes are punched into the file. RDMA can read only stable regions. For a
        shard, `subject` is the number of the shard, and `epoch` is the epoch in its header.
        """
        return self._regions.publish(str(path), int(kind), subject, epoch, reserve_bytes, stable)

    def withdraw(self, number: int) -> None:
        """Stop publishing a region. Further reads of the region fail with the fault "retired"."""
        self._regions.withdraw(number)

    def directory(self) -> list[native.RegionEntry]:
        """Return the directory: the entries of all published regions."""
        return self._regions.directory()

    def counters(self) -> dict[str, int]:
        """Return the counters of the server: all connections, open connections, reads, bytes read, failures reported to
        clients, and CPU time of its thread in ns.
        """
        return self._server.counters()
