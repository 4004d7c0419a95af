"""A client of the data plane in Python, from docs/adr/0015-data-plane.md and native/src/dataplane/wire.hpp.

It shares no code with the native client: `read` reads over TCP, `VerbsReader` (verbs_reader.py) by RDMA.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import struct
from dataclasses import dataclass

MAGIC, VERSION = 0x314E4C50534E4550, 1
HELLO, CHALLENGE, PROOF, WELCOME, FAILURE, LIST, REGIONS, READ, DATA, JOIN, JOINED, LIST_KEYS, KEYS = range(1, 14)
FRAME, GREETING, ITEM = struct.Struct("<IHH"), struct.Struct("<QII32s"), struct.Struct("<5Q6I")
ENDPOINT, SEGMENT = struct.Struct("<16s4I"), struct.Struct("<3QII")
ENGINE, NODE = 0, 1


class RefusedError(Exception):
    """The server answered with a failure."""


@dataclass(frozen=True, slots=True)
class Region:
    """An entry of the directory."""

    number: int
    kind: int
    subject: int
    epoch: int
    bytes: int
    stable: bool
    path: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a connection of queue pairs."""

    gid: bytes
    queue_pair: int
    first_packet: int
    mtu: int
    reads: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a region that RDMA can read."""

    begin: int
    end: int
    address: int
    key: int


class PlaneClient:
    """An authenticated connection."""

    def __init__(self, host: str, port: int, secret: bytes) -> None:
        self._socket = socket.create_connection((host, port), timeout=60)
        nonce = os.urandom(32)
        other = GREETING.unpack(self._ask(HELLO, GREETING.pack(MAGIC, VERSION, 0, nonce), CHALLENGE))[3]

        def proof(side: int) -> bytes:
            text = struct.pack("<QII32s32s", MAGIC, VERSION, side, nonce, other)
            return hmac.digest(secret, text, hashlib.sha256)

        welcome = self._ask(PROOF, proof(ENGINE), WELCOME)
        if not hmac.compare_digest(welcome[:32], proof(NODE)):
            raise RefusedError("the server does not know the secret")
        self.offers_rdma = bool(struct.unpack_from("<I", welcome, 84)[0])

    def close(self) -> None:
        """End the connection."""
        self._socket.close()

    def regions(self) -> list[Region]:
        """Return the directory."""
        body = self._ask(LIST, b"", REGIONS)
        found, at = [], 8
        for _ in range(int.from_bytes(body[:8], "little")):
            epoch, size, _, _, _, number, kind, subject, stable, path_bytes, _ = ITEM.unpack_from(body, at)
            at += ITEM.size
            path = body[at : at + path_bytes].decode()
            at += path_bytes
            found.append(Region(number, kind, subject, epoch, size, bool(stable), path))
        return found

    def read(self, region: int, offset: int, length: int) -> bytes:
        """Read a range over TCP."""
        return self._ask(READ, struct.pack("<QQII", 1, offset, region, length), DATA)

    def join(self, own: Endpoint) -> Endpoint:
        """Connect a queue pair."""
        sent = ENDPOINT.pack(own.gid, own.queue_pair, own.first_packet, own.mtu, own.reads)
        return Endpoint(*ENDPOINT.unpack(self._ask(JOIN, sent, JOINED)))

    def keys(self, region: int) -> list[Segment]:
        """Return the registered parts of a region."""
        body = self._ask(LIST_KEYS, struct.pack("<II", region, 0), KEYS)
        count, words = struct.unpack_from("<II", body)
        if count == 0:
            raise RefusedError(body[8 : 8 + words].decode())
        parts = (SEGMENT.unpack_from(body, 8 + SEGMENT.size * i) for i in range(count))
        return [Segment(*part[:4]) for part in parts]

    def _ask(self, message: int, body: bytes, expected: int) -> bytes:
        self._socket.sendall(FRAME.pack(len(body), message, 0) + body)
        size, answer, _ = FRAME.unpack(self._exactly(FRAME.size))
        found = self._exactly(size)
        if answer == FAILURE:
            raise RefusedError(found[4:].decode())
        assert answer == expected
        return found

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the server closed the connection")
            parts += part
        return bytes(parts)
