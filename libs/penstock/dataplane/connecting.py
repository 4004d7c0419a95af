"""Which transport leads to a node."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

from penstock.errors import DataPlaneError
from penstock.store import _native as native

Transport = Literal["auto", "shm", "tcp", "rdma"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlaneLimits:
    """What one plane may take: times in ms, and bytes asked for and not yet there."""

    connect_timeout_ms: int = 2_000
    read_timeout_ms: int = 10_000
    bytes_in_flight: int = 32 << 20


_DEFAULT_LIMITS = PlaneLimits()


def connect(
    node: int,
    host: str,
    port: int,
    secret: bytes,
    transport: Transport = "auto",
    limits: PlaneLimits = _DEFAULT_LIMITS,
) -> native.Plane:
    """A plane to the node whose server listens at host and port, proved by the secret that both hold.

    `node` is the number by which the caller's reads name it. "auto" takes shared memory where the node's regions can be
    mapped here, and otherwise TCP. Raises DataPlaneError where the node cannot be reached that way.
    """
    options = {
        "connect_timeout_ms": limits.connect_timeout_ms,
        "read_timeout_ms": limits.read_timeout_ms,
        "bytes_in_flight": limits.bytes_in_flight,
    }
    if transport in ("auto", "shm"):
        shared = native.SharedPlane(node, host, port, secret, **options)
        try:
            shared.directory(node)
        except DataPlaneError as error:
            if transport == "shm" or error.fault != "refused" or not _accepts(node, host, port, secret, options):
                raise
            _log.info("data plane to node %d (%s:%d): %s, so not in place", node, host, port, error)
        else:
            return shared
    plane = native.TcpPlane(node, host, port, secret, **options)
    plane.directory(node)
    return plane


def _accepts(node: int, host: str, port: int, secret: bytes, options: dict[str, int]) -> bool:
    """Whether the node lets us in at all: shared memory may be refused for reasons of its own."""
    native.TcpPlane(node, host, port, secret, **options).directory(node)
    return True
