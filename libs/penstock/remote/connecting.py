"""Selects the transport to a process that publishes regions: shared memory, RDMA or TCP."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.core import _native as native
from penstock.errors import DataPlaneError

if TYPE_CHECKING:
    from penstock.remote.tls import PeerTls

Transport = Literal["auto", "shm", "tcp", "rdma"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlaneLimits:
    """Limits of one connection of the data plane: timeouts in ms, and the maximum size in bytes of outstanding
    reads.
    """

    connect_timeout_ms: int = 2_000
    read_timeout_ms: int = 10_000
    bytes_in_flight: int = 32 << 20


_DEFAULT_LIMITS = PlaneLimits()


def permits_rdma(transport: Transport, tls: PeerTls | None, *, rdma_unencrypted: bool) -> bool:
    """Return whether the transport "auto" is allowed to select RDMA. RDMA does not encrypt. With TLS, RDMA is therefore
    permitted only if `rdma_unencrypted` is set. DataPlaneError if the transport is "rdma" but RDMA is not permitted.
    """
    permitted = tls is None or rdma_unencrypted
    if transport == "rdma" and not permitted:
        raise DataPlaneError("RDMA does not encrypt: with certificates it needs rdma_unencrypted", "refused")
    return permitted


def connect(
    node: int,
    host: str,
    port: int,
    secret: bytes,
    transport: Transport = "auto",
    *,
    limits: PlaneLimits = _DEFAULT_LIMITS,
    rdma_device: str = "",
    tls: PeerTls | None = None,
    rdma_unencrypted: bool = False,
) -> native.Plane:
    """Connect the data plane to the process whose `Server` listens at `host` and `port`. Both sides authenticate by the
    shared secret.

    `node`: the number by which reads of the caller refer to that process. The transport "auto" selects shared memory if
    the regions of the process can be mapped on this machine. Otherwise, "auto" selects RDMA if both sides have RDMA,
    and TCP if not. "rdma" falls back to TCP, with a warning. "shm" and "tcp" do not fall back. `rdma_device`: the name
    of the RDMA device. "" selects the first usable device. DataPlaneError if the process is unreachable or rejects the
    secret.

    `tls`: None means no TLS. With TLS, the process must present a certificate for `host`. RDMA does not encrypt. With
    TLS, RDMA is therefore permitted only if `rdma_unencrypted` is set. Otherwise "auto" does not select RDMA, and
    "rdma" is an error.
    """
    rdma = permits_rdma(transport, tls, rdma_unencrypted=rdma_unencrypted)
    return _Reach(node, host, port, secret, limits, rdma_device, tls).open(transport, rdma=rdma)


@dataclass(frozen=True, slots=True)
class _Reach:
    node: int
    host: str
    port: int
    secret: bytes
    limits: PlaneLimits
    rdma_device: str
    tls: PeerTls | None

    def open(self, transport: Transport, *, rdma: bool) -> native.Plane:
        tcp = native.TcpPlane(self.node, self.host, self.port, self.secret, **self._options())
        # raises if the node is unreachable or the secret is wrong: no other transport would work either
        tcp.directory(self.node)
        if transport == "shm":
            return self._shared()
        if transport == "auto" and tcp.is_on_this_machine():
            try:
                return self._shared()
            except DataPlaneError as error:
                self._say(logging.INFO, f"not in place: {error}")
        if transport == "rdma" or (transport == "auto" and rdma and tcp.offers_rdma()):
            try:
                return self._rdma()
            except DataPlaneError as error:
                self._say(logging.WARNING, f"reads go over TCP: {error}")
        return tcp

    def _shared(self) -> native.Plane:
        plane = native.SharedPlane(self.node, self.host, self.port, self.secret, **self._options())
        plane.directory(self.node)
        return plane

    def _rdma(self) -> native.Plane:
        plane = native.rdma_plane(self.node, self.host, self.port, self.secret, self.rdma_device, **self._options())
        plane.directory(self.node)
        if remark := plane.remark(self.node):
            self._say(logging.WARNING, f"some reads go over TCP: {remark}")
        return plane

    def _options(self) -> dict[str, Any]:
        return asdict(self.limits) | {"tls": None if self.tls is None else self.tls.identity}

    def _say(self, level: int, what: str) -> None:
        _log.log(level, "data plane to node %d at %s:%d: %s", self.node, self.host, self.port, what)
