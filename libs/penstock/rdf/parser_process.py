"""Parser processes: documents of a library's formats, parsed where their memory and CPU time are bounded (ADR 52).

A document that makes its parser overrun, run out of memory, overflow its stack or abort is a DataError for that
document alone. The process is replaced; it takes some 30 ms to start.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyoxigraph

from penstock.errors import DataError, StorageError
from penstock.rdf import parser_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.rdf.formats import Format
    from penstock.rdf.limits import ParseLimits

PARSERS = 2
"""Parser processes that stay, and documents that are parsed in such processes at the same time."""
_BLOCK_BYTES = 1 << 20
_SMALL_BYTES = 64 << 10
_RETIRE_BYTES = 64 << 20
"""Input and output after which a process is replaced: its heap does not shrink."""
_STALLED_S = 60.0
_STALLED_FACTOR = 20.0
"""A parser that neither asks nor answers for so long, on top of a multiple of its CPU time, is taken for stalled."""
_HEAD = struct.Struct(">cQ")
_OUT_OF_MEMORY = (signal.SIGABRT,)  # Rust's allocator aborts
_OVERRUN = (signal.SIGPROF, signal.SIGXCPU)
_POSITION = re.compile(r"^(?:Parser error )?(?:at line \d+ )?(?:between columns \d+ and \d+|column \d+)?[: ]*")
_CRASHED = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)


class KilledError(DataError):
    """The parser process was killed from outside, or by the kernel: the document may be parsed again, once."""


class _Ended(Exception):  # noqa: N818 - internal
    """The process has closed its output."""


class ParserProcess:
    """One process. One document at a time."""

    def __init__(self, limits: ParseLimits) -> None:
        self.limits = limits
        self._moved = 0
        self._busy = self._stalled = False
        library = str(Path(pyoxigraph.__file__).parent.parent)
        command = [sys.executable, "-I", "-S", str(parser_worker.__file__), library]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this interpreter, a file of this package
                [*command, str(limits.parser_memory_mb << 20)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        except OSError as error:
            raise StorageError(f"the parser process cannot be started: {error}") from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()

    @property
    def usable(self) -> bool:
        """Whether it may take another document."""
        return not self._busy and self._moved < _RETIRE_BYTES and self._process.poll() is None

    def parse(self, read: Callable[[int], bytes], fmt: Format, base: str | None) -> Iterator[bytes]:
        """Yield the statements of a document as N-Quads, in parts. `read` gives the next bytes, none at the end.

        DataError where the document is not what the format says, or exceeds a bound. An iterator that is not taken to
        its end leaves the process unusable: close it.
        """
        self._busy, size = True, 0
        kind, payload = b"R", b""
        try:
            self._send(b"P", self._request(fmt, base))
            while kind != b"D":
                if kind == b"R":
                    block = read(_BLOCK_BYTES)
                    size += len(block)
                    self._send(b"I" if len(block) == _BLOCK_BYTES else b"L", block)
                elif kind == b"Q":
                    yield payload
                else:
                    self._busy = size > _SMALL_BYTES  # what a large one leaves behind ends with its process
                    raise self._refusal(payload, size)
                kind, payload = self._receive(self.limits.cpu_s(size))
        except (_Ended, BrokenPipeError):
            raise self._verdict(size) from None
        self._busy = bool(payload)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    # ---- frames
    def _request(self, fmt: Format, base: str | None) -> bytes:
        limits = self.limits
        asked = {
            "format": fmt.value,
            "base": base,
            "cpu_s": limits.cpu_s(0),
            "cpu_s_per_mib": limits.parser_cpu_s_per_mib,
            "expansion": limits.expanded_bytes(0),
            "expansion_factor": limits.expansion_factor,
        }
        return json.dumps(asked).encode()

    def _send(self, kind: bytes, payload: bytes) -> None:
        self._moved += len(payload)
        waiting = memoryview(_HEAD.pack(kind, len(payload)) + payload)
        while waiting:
            waiting = waiting[os.write(self._in, waiting) :]

    def _receive(self, cpu_s: float) -> tuple[bytes, bytes]:
        deadline = time.monotonic() + _STALLED_S + _STALLED_FACTOR * cpu_s
        kind, size = _HEAD.unpack(self._exactly(_HEAD.size, deadline))
        self._moved += size
        return kind, self._exactly(size, deadline)

    def _exactly(self, size: int, deadline: float) -> bytes:
        poll = select.poll()  # not select.select: descriptors may lie above 1023
        poll.register(self._out, select.POLLIN)
        parts = []
        while size:
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                self._stalled = True
                self._process.kill()
                raise _Ended
            part = os.read(self._out, min(size, _BLOCK_BYTES))
            if not part:
                raise _Ended
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    # ---- errors
    def _refusal(self, payload: bytes, size: int) -> DataError:
        told = json.loads(payload)
        message, limits = told["message"], self.limits
        match told["kind"]:
            case "syntax":
                return syntax_error(message, told["line"], told["column"])
            case "memory":
                return DataError(memory_message(message))
            case "expansion":
                return DataError(
                    f"a document of {size} bytes expands to more than {limits.expanded_bytes(size)} bytes of N-Quads "
                    "(expansion_mib, expansion_factor)"
                )
            case "ValueError":
                return DataError(f"base IRI: {message}")
            case kind:
                return DataError(f"the parser fails: {kind}: {message}")

    def _verdict(self, size: int) -> DataError:
        """Why the process has ended while it parsed a document, of which it has read `size` bytes."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STALLED_S)
        code, limits = -(self._process.returncode or 0), self.limits
        if code in _OVERRUN or self._stalled:
            return DataError(
                f"parsing {size} bytes takes more than {limits.cpu_s(size):.1f} s of CPU time "
                "(parser_cpu_s, parser_cpu_s_per_mib)"
            )
        if code in _OUT_OF_MEMORY:
            return DataError(f"parsing {size} bytes takes more than {limits.parser_memory_mb} MB (parser_memory_mb)")
        if code in _CRASHED:
            return DataError(f"the parser ends with {signal.Signals(code).name}: the document is nested too deeply")
        if code in (signal.SIGKILL, signal.SIGTERM):
            return KilledError(f"the parser process was killed while it read {size} bytes")
        return DataError(f"the parser fails (exit status {self._process.returncode})")


def syntax_error(message: str, line: int | None, column: int | None) -> DataError:
    """Return a parser's complaint, its place first."""
    if "No LoadDocumentCallback" in message:
        return DataError(
            "the JSON-LD document names a remote context: contexts are not fetched; put the context into the document"
        )
    where = "" if line is None else f"line {line}, column {column or 1}: "
    return DataError(where + (_POSITION.sub("", message) or message))


def memory_message(message: str) -> str:
    """Return what a MemoryError of the library means: it has a bound on one token."""
    return f"a token of the document is too long: {message}" if message else "the document takes too much memory"


class ParserPool:
    """At most PARSERS documents at a time; their processes stay for the next ones."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin without processes: in a forked child, where those are the parent's."""
        self._idle: list[ParserProcess] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(PARSERS)

    def parse(
        self, read: Callable[[int], bytes], fmt: Format, base: str | None, limits: ParseLimits, *, wait: bool
    ) -> Iterator[bytes]:
        """Yield a document's statements as `ParserProcess.parse` does. `wait`: for a place, where all are taken."""
        with self._places if wait else contextlib.nullcontext():
            process = self._take(limits)
            try:
                yield from process.parse(read, fmt, base)
            finally:
                self._give_back(process)

    def _take(self, limits: ParseLimits) -> ParserProcess:
        while True:
            with self._lock:
                process = self._idle.pop() if self._idle else None
            if process is None:
                return ParserProcess(limits)
            if process.usable and process.limits == limits:
                return process
            process.close()

    def _give_back(self, process: ParserProcess) -> None:
        with self._lock:
            if process.usable and len(self._idle) < PARSERS:
                self._idle.append(process)
                return
        process.close()

    def close(self) -> None:
        """End the processes that wait for work."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()


POOL = ParserPool()
"""This process's parsers."""

os.register_at_fork(after_in_child=POOL.forget)
atexit.register(POOL.close)
