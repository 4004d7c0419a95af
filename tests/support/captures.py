"""Captures the TCP traffic of some ports on the loopback interface (Linux, root)."""

from __future__ import annotations

import ctypes
import socket
import struct
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Collection

_IPV4, _MOST_BYTES = 0x0800, 1 << 18
_ATTACH_FILTER, _RECEIVE_BUFFER_FORCE = 26, 33
_SOL_PACKET, _PACKET_STATISTICS = 263, 6
_BUFFER_BYTES = 128 << 20
_SYN = 2
_LAST_S = 1.0  # the time in which the last packets are read


@dataclass(slots=True)
class Flow:
    """The bytes of one direction of a connection. `begun`: whether the capture has seen its begin."""

    source: int
    target: int
    begun: bool
    parts: dict[int, bytes] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        """The bytes in the order in which they were first sent."""
        return b"".join(self.parts.values())


class Capture:
    """Use it as a context manager. PermissionError without the right to capture."""

    def __init__(self, ports: Collection[int]) -> None:
        self.flows: list[Flow] = []
        self.dropped = 0
        self._ports = frozenset(ports)
        self._current: dict[tuple[int, int], Flow] = {}
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, _RECEIVE_BUFFER_FORCE, _BUFFER_BYTES)
        self._attach(_program(sorted(self._ports)))
        self._socket.bind(("lo", _IPV4))
        self._socket.settimeout(0.2)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)

    def _attach(self, program: list[tuple[int, int, int, int]]) -> None:
        code = b"".join(struct.pack("=HBBI", *line) for line in program)
        memory = ctypes.create_string_buffer(code, len(code))
        given = struct.pack("@HP", len(program), ctypes.addressof(memory))
        self._socket.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, given)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        time.sleep(_LAST_S)
        self._ended.set()
        self._thread.join()
        statistics = self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, 8)
        self.dropped = struct.unpack("@II", statistics)[1]
        self._socket.close()

    def of(self, port: int) -> list[Flow]:
        """Return the flows to and from a port."""
        return [flow for flow in self.flows if port in (flow.source, flow.target)]

    def _run(self) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                self._read(self._socket.recv(_MOST_BYTES))

    def _read(self, packet: bytes) -> None:
        segment = packet[4 * (packet[0] & 15) : int.from_bytes(packet[2:4]) or None]
        source, target, number = struct.unpack_from("!HHI", segment)
        begins = bool(segment[13] & _SYN)
        if begins or (source, target) not in self._current:
            flow = self._current[source, target] = Flow(source, target, begins)
            self.flows.append(flow)
        if data := segment[4 * (segment[12] >> 4) :]:
            self._current[source, target].parts.setdefault(number, data)


def _program(ports: list[int]) -> list[tuple[int, int, int, int]]:
    """Return a filter (classic BPF) for IPv4 packets of TCP from or to these ports."""
    tests = [(0x48, 0, 0, 0), *((0x15, 0, 0, port) for port in ports)]  # the source port
    tests += [(0x48, 0, 0, 2), *((0x15, 0, 0, port) for port in ports)]  # the target port
    lines = [(0x30, 0, 0, 9), (0x15, 1, 0, socket.IPPROTO_TCP), (0x06, 0, 0, 0), (0xB1, 0, 0, 0), *tests]
    accepting = len(lines) + 1  # after the line that rejects
    found = [
        (code, accepting - at - 1, 0, value) if code == 0x15 and at > 1 else (code, yes, no, value)
        for at, (code, yes, no, value) in enumerate(lines)
    ]
    return [*found, (0x06, 0, 0, 0), (0x06, 0, 0, _MOST_BYTES)]
