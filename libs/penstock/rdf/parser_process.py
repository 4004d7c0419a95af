"""Parser processes: sandboxed parsing of documents in pyoxigraph's formats, with bounded memory and CPU time (ADR 52).

A document fails with a DataError if its parser exceeds a bound, overflows the stack or aborts. Other documents are not
affected. The pool then replaces the process. The start of a new process takes about 30 ms.
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
    from penstock.rdf.parse_limits import ParseLimits

PARSERS = 2
"""Maximum number of idle parser processes, and of concurrent calls of `ParserPool.parse` with `wait`."""
_BLOCK_BYTES = 1 << 20
_SMALL_BYTES = 64 << 10
_RETIRE_BYTES = 64 << 20
"""A process is replaced after this number of bytes of input and output, because the heap of a process does not shrink.
"""
_STALLED_S = 60.0
_STALLED_FACTOR = 20.0
"""A parser is stalled if it neither requests input nor responds for `_STALLED_S` seconds plus `_STALLED_FACTOR` times
the CPU limit.
"""
_HEAD = struct.Struct(">cQ")
_OUT_OF_MEMORY = (signal.SIGABRT,)  # Rust's allocator aborts when memory is exhausted
_OVERRUN = (signal.SIGPROF, signal.SIGXCPU)
_POSITION = re.compile(r"^(?:Parser error )?(?:at line \d+ )?(?:between columns \d+ and \d+|column \d+)?[: ]*")
_CRASHED = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGTRAP)


class KilledError(DataError):
    """A user or the kernel has killed the parser process. The caller can parse the document once more."""


class _Ended(Exception):  # noqa: N818 - internal
    """The process closed its output."""


class ParserProcess:
    """A parser process. It parses one document at a time."""

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
        """Whether the process can parse another document."""
        return not self._busy and self._moved < _RETIRE_BYTES and self._process.poll() is None

    def parse(self, read: Callable[[int], bytes], fmt: Format, base: str | None) -> Iterator[bytes]:
        """Yield a document's statements as N-Quads, in parts. `read` returns the next bytes of the document, or no
        bytes at the end.

        DataError if the document is invalid or exceeds a limit. A caller that stops before the end of the iterator must
        close the process.
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
                    self._busy = size > _SMALL_BYTES  # a large document's heap is released by ending the process
                    raise self._refusal(payload, size)
                kind, payload = self._receive(self.limits.cpu_s(size))
        except (_Ended, BrokenPipeError):
            raise self._exit_error(size) from None
        self._busy = bool(payload)

    def close(self) -> None:
        """Terminate the process."""
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    # ---- frames
    def _request(self, fmt: Format, base: str | None) -> bytes:
        limits = self.limits
        request = {
            "format": fmt.value,
            "base": base,
            "cpu_s": limits.cpu_s(0),
            "cpu_s_per_mib": limits.parser_cpu_s_per_mib,
            "expansion": limits.expanded_bytes(0),
            "expansion_factor": limits.expansion_factor,
        }
        return json.dumps(request).encode()

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
        poll = select.poll()  # not select.select: descriptors can exceed 1023
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
        report = json.loads(payload)
        message, limits = report["message"], self.limits
        match report["kind"]:
            case "syntax":
                return syntax_error(message, report["line"], report["column"])
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

    def _exit_error(self, size: int) -> DataError:
        """Return an error with the reason why the process ended during a document. `size`: the number of bytes of the
        document that the process had read.
        """
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
    """Return a DataError for a syntax error, prefixed with its position."""
    if "No LoadDocumentCallback" in message:
        return DataError(
            "the JSON-LD document names a remote context: contexts are not fetched; put the context into the document"
        )
    where = "" if line is None else f"line {line}, column {column or 1}: "
    return DataError(where + (_POSITION.sub("", message) or message))


def memory_message(message: str) -> str:
    """Return the error text for a MemoryError of the library. An empty message means that memory is exhausted. A
    message means that a token is too long.
    """
    return f"a token of the document is too long: {message}" if message else "the document takes too much memory"


class ParserPool:
    """A pool of parser processes, which are reused. At most PARSERS documents with `wait` are parsed concurrently. The
    number of documents without `wait` has no limit.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Drop all processes without ending them. A forked child calls this method, because its parent owns the
        processes.
        """
        self._idle: list[ParserProcess] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(PARSERS)

    def parse(
        self, read: Callable[[int], bytes], fmt: Format, base: str | None, limits: ParseLimits, *, wait: bool
    ) -> Iterator[bytes]:
        """Yield a document's statements like `ParserProcess.parse`. With `wait`, the call waits until fewer than
        PARSERS calls with `wait` are in progress. Without `wait`, parsing begins at once.
        """
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
        """Terminate the idle processes."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.close()


POOL = ParserPool()
"""The parser pool of this process."""

os.register_at_fork(after_in_child=POOL.forget)
atexit.register(POOL.close)
