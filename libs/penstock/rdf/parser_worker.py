"""The parser process. It converts documents from standard input to N-Quads on standard output, one after the other.

`parser_process` runs this program by its path. Apart from the standard library, this program imports only pyoxigraph,
so that it starts in about 30 ms. The arguments are the folder of pyoxigraph, and the address space in bytes.

A frame is a kind (one byte), a length (8 bytes, big endian) and the payload.

- Input: P (start of a document: JSON with format, base IRI and limits), I (input; more follows), L (last input).
- Output: R (request for input), Q (statements as N-Quads), D (end of the document), E (error, as JSON). If D has a
  payload, the pool must replace this process.

A CPU timer runs during parsing. When the timer expires, SIGPROF ends the process.
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
_SLICE = 256  # statements between two checks of the expansion limit
_PART_STATEMENTS, _PART_BYTES = 16_384, 4 << 20
_SMALL_BYTES = 64 << 10  # documents up to this size do not grow the heap noticeably
_MIB = 1 << 20


class _Refused(Exception):  # noqa: N818 - the end of one document
    """The document exceeds the expansion limit."""


class _Pipes:
    """Frames on standard input and output."""

    def __init__(self) -> None:
        self._in = os.fdopen(os.dup(0), "rb", buffering=_MIB)
        self._out = os.fdopen(os.dup(1), "wb", buffering=_MIB)
        with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - what libraries print must not be taken for frames
            os.dup2(nothing.fileno(), 0)
            os.dup2(nothing.fileno(), 1)

    def receive(self) -> tuple[bytes, bytes]:
        head = self._in.read(_HEAD.size)
        if len(head) < _HEAD.size:
            raise SystemExit  # the parent process ended
        kind, size = _HEAD.unpack(head)
        return kind, self._in.read(size)

    def send(self, kind: bytes, payload: bytes = b"", *, flush: bool = True) -> None:
        self._out.write(_HEAD.pack(kind, len(payload)))
        self._out.write(payload)
        if flush:
            self._out.flush()


class _Input:
    """A file-like view of the document. It requests the next block when the current block is consumed."""

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


def _parse(library: Any, pipes: _Pipes, request: dict[str, Any]) -> int:
    """Parse a document and send its statements. Return the document's size in bytes."""
    source = _Input(pipes, request["cpu_s_per_mib"])
    name = {"turtle": "TURTLE", "trig": "TRIG", "xml": "RDF_XML", "json-ld": "JSON_LD"}[request["format"]]
    statements = library.parse(source, format=getattr(library.RdfFormat, name), base_iri=request["base"])
    parts: list[bytes] = []
    count = size = expanded = 0
    while piece := list(islice(statements, _SLICE)):
        text = library.serialize(piece, format=library.RdfFormat.N_QUADS)
        expanded += len(text)
        if expanded > request["expansion"] + request["expansion_factor"] * source.size:
            raise _Refused
        parts.append(text)
        count, size = count + len(piece), size + len(text)
        if count >= _PART_STATEMENTS or size >= _PART_BYTES:
            pipes.send(b"Q", b"".join(parts))
            parts, count, size = [], 0, 0
    if parts:
        pipes.send(b"Q", b"".join(parts), flush=False)
    return source.size


def _uses_half_memory(bound: int) -> bool:
    """Return whether this process uses more than half of its limit on the address space (`bound`). Must be called
    between two documents.
    """
    with open("/proc/self/statm", "rb") as statm:  # noqa: PTH123 - pathlib is not imported
        return 2 * int(statm.read().split()[0]) * resource.getpagesize() > bound


def _error(kind: str, error: BaseException) -> bytes:
    line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
    message = getattr(error, "msg", None) or str(error)
    report = {"kind": kind, "message": message[:2_000], "line": line, "column": column}
    return json.dumps(report).encode()


def main() -> None:
    """Parse documents until standard input ends."""
    sys.path.append(sys.argv[1])
    import pyoxigraph  # noqa: PLC0415 - its folder is an argument

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    bound = int(sys.argv[2]) if most == resource.RLIM_INFINITY else min(int(sys.argv[2]), most)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C: when it ends, standard input closes
    pipes = _Pipes()
    while True:
        request = json.loads(pipes.receive()[1])
        signal.setitimer(signal.ITIMER_PROF, request["cpu_s"])
        try:
            size = _parse(pyoxigraph, pipes, request)
        except _Refused as error:
            answer = b"E", _error("expansion", error)
        except SyntaxError as error:
            answer = b"E", _error("syntax", error)
        except MemoryError as error:
            answer = b"E", _error("memory", error)
        except Exception as error:  # noqa: BLE001 - the error belongs to the document
            answer = b"E", _error(type(error).__name__, error)
        else:
            answer = b"D", b"replace" if size > _SMALL_BYTES and _uses_half_memory(bound) else b""
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipes.send(*answer)


if __name__ == "__main__":
    main()
