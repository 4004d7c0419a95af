"""The parser process: parses documents one after the other, from its standard input to N-Quads on its standard output.

A program of its own that imports nothing but pyoxigraph, so that it starts in some 30 ms: `parser_process` runs it by
its path. Arguments: the folder of pyoxigraph, the address space in bytes.

Frames are a kind (one byte), a length (8 bytes, big endian) and as many bytes.
In: P (a document begins: JSON with format, base and bounds), I (input, more follows), L (the last input).
Out: R (more input, please), Q (statements as N-Quads), D (the document ends; with a payload: replace this process), E
(its error, as JSON).
A timer of CPU time runs while a document is parsed; it ends the process (SIGPROF).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
from itertools import islice
from typing import Any

_HEAD = struct.Struct(">cQ")
_SLICE = 256  # statements between two looks at what they take
_PART_STATEMENTS, _PART_BYTES = 16_384, 4 << 20
_SMALL_BYTES = 64 << 10  # a document that leaves the heap as it was
_MIB = 1 << 20


class _Refused(Exception):  # noqa: N818 - the end of one document
    """A bound was exceeded."""


class _Pipes:
    """Frames of this process."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), "rb", buffering=_MIB)
        self._out = os.fdopen(os.dup(1), "wb", buffering=_MIB)
        with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - what libraries print must not be taken for frames
            os.dup2(nothing.fileno(), 0)
            os.dup2(nothing.fileno(), 1)

    def receive(self) -> tuple[bytes, bytes]:
        head = self._in.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise SystemExit  # the parent has gone
        kind, size = _HEAD.unpack(head)
        return kind, self._in.read(size)

    def send(self, kind: bytes, payload: bytes = b"", *, flush: bool = True) -> None:
        self._out.write(_HEAD.pack(kind, len(payload)))
        self._out.write(payload)
        if flush:
            self._out.flush()


class _Input:
    """A document as a file. Asks for a block when the one before is used up."""

    def __init__(self, pipes: _Pipes, cpu_s_per_mib: float) -> None:
        self._pipes = pipes
        self._cpu_s_per_mib = cpu_s_per_mib
        self._block = memoryview(b"")
        self._last = False
        self.size = 0
        self._take()

    def read(self, size: int = -1) -> bytes:
        while not self._block and not self._last:
            self._pipes.send(b"R")
            self._take()
        piece = self._block if size < 0 else self._block[:size]
        self._block = self._block[len(piece) :]
        return bytes(piece)

    def _take(self) -> None:
        kind, data = self._pipes.receive()
        self._last = kind == b"L"
        self._block = memoryview(data)
        self.size += len(data)
        left, _ = signal.getitimer(signal.ITIMER_PROF)
        signal.setitimer(signal.ITIMER_PROF, left + self._cpu_s_per_mib * len(data) / _MIB)


def _parse(library: Any, pipes: _Pipes, asked: dict[str, Any]) -> int:
    """Parse a document and send its statements; return its size."""
    source = _Input(pipes, asked["cpu_s_per_mib"])
    name = {"turtle": "TURTLE", "trig": "TRIG", "xml": "RDF_XML", "json-ld": "JSON_LD"}[asked["format"]]
    statements = library.parse(source, format=getattr(library.RdfFormat, name), base_iri=asked["base"])
    parts: list[bytes] = []
    count = size = expanded = 0
    while piece := list(islice(statements, _SLICE)):
        text = library.serialize(piece, format=library.RdfFormat.N_QUADS)
        expanded += len(text)
        if expanded > asked["expansion"] + asked["expansion_factor"] * source.size:
            raise _Refused
        parts.append(text)
        count, size = count + len(piece), size + len(text)
        if count >= _PART_STATEMENTS or size >= _PART_BYTES:
            pipes.send(b"Q", b"".join(parts))
            parts, count, size = [], 0, 0
    if parts:
        pipes.send(b"Q", b"".join(parts), flush=False)
    return source.size


def _swollen(bound: int) -> bool:
    """Whether this process takes half of its address space between documents."""
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib is not imported
        return 2 * int(statm.read().split()[0]) * resource.getpagesize() > bound


def _error(kind: str, error: BaseException) -> bytes:
    line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
    message = getattr(error, "msg", None) or str(error)
    told = {"kind": kind, "message": message[:2_000], "line": line, "column": column}
    return json.dumps(told).encode()


def main() -> None:
    """Parse until standard input ends."""
    sys.path.append(sys.argv[1])
    import pyoxigraph  # noqa: PLC0415 - its folder is an argument

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bound = int(sys.argv[2]) if most == resource.RLIM_INFINITY else min(int(sys.argv[2]), most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's: its end closes standard input
    pipes = _Pipes()
    while True:
        asked = json.loads(pipes.receive()[1])
        signal.setitimer(signal.ITIMER_PROF, asked["cpu_s"])
        try:
            size = _parse(pyoxigraph, pipes, asked)
        except _Refused as error:
            answer = b"E", _error("expansion", error)
        except SyntaxError as error:
            answer = b"E", _error("syntax", error)
        except MemoryError as error:
            answer = b"E", _error("memory", error)
        except Exception as error:  # noqa: BLE001 - the document's
            answer = b"E", _error(type(error).__name__, error)
        else:
            answer = b"D", b"replace" if size > _SMALL_BYTES and _swollen(bound) else b""
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipes.send(*answer)


if __name__ == "__main__":
    main()
