"""Recorded streams: files of `TIMESTAMP_MS <s> <p> <o> .` lines, and their replay in order of time.

Consecutive lines with one timestamp are one event: its blank nodes are its own, and it is taken whole or not at all.
"""

from __future__ import annotations

import gzip
import heapq
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.engine import Engine

Event = tuple[int, bytes]

_BATCH = 2000  # events handed to the engine at once when replaying at full speed


@dataclass(frozen=True, slots=True)
class Recording:
    """A stream and the file that holds its events ("-" is standard input)."""

    stream: str
    path: str

    def open(self) -> BinaryIO:
        """The file's bytes, decompressed where the name says .gz."""
        if self.path == "-":
            return sys.stdin.buffer
        if self.path.endswith(".gz"):
            return cast("BinaryIO", gzip.open(self.path, "rb"))
        return Path(self.path).open("rb")

    def events(self) -> Iterator[Event]:
        """(time in ms, N-Triples) of each event, in the file's order."""
        with self.open() as lines:
            current, pending = None, list[bytes]()
            for number, line in enumerate(lines, 1):
                stamp, _, rest = line.lstrip().partition(b" ")
                if b"\t" in stamp:
                    stamp, _, rest = line.lstrip().partition(b"\t")
                if not stamp.strip() or stamp.startswith(b"#"):
                    continue
                moment = self._moment(stamp, number)
                if moment != current and pending:
                    assert current is not None
                    yield current, b"".join(pending)
                    pending = []
                current = moment
                pending.append(rest)
            if pending and current is not None:
                yield current, b"".join(pending)

    def _moment(self, stamp: bytes, number: int) -> int:
        try:
            return int(stamp)
        except ValueError:
            shown = stamp[:40].decode("utf-8", "replace")
            raise DataError(f"{self.path}, line {number}: a line begins with milliseconds, not {shown!r}") from None


def replay(
    engine: Engine,
    recordings: Sequence[Recording],
    *,
    speed: float | None,
    after_step: Callable[[int], bool],
    lateness_ms: int = 0,
    start_ms: int | None = None,
    frame_s: float = 0.1,
) -> int:
    """Push all events in order of time; `speed` event-time seconds a second, None = as fast as it goes.

    `after_step(t)` runs whenever events up to t are in and ends the replay by returning False. Events before `start_ms`
    are skipped. All streams advance together, so that a quiet one does not hold the others back; `lateness_ms` is how
    far behind the events, until the end: a file may be out of order by so much. Returns the number of events pushed.
    """
    merged = heapq.merge(*map(_named, recordings), key=lambda event: event[0])
    pushed, last = 0, None
    began, origin = time.monotonic(), None
    waiting: dict[str, list[Event]] = {}
    streams = dict.fromkeys(recording.stream for recording in recordings)

    def flush(until: int, behind: int = lateness_ms) -> bool:
        for stream, events in waiting.items():
            engine.push_events(stream, events)
        waiting.clear()
        for stream in streams:
            engine.advance(stream, until - behind)
        return after_step(until)

    for moment, stream, data in merged:
        if start_ms is not None and moment < start_ms:
            continue
        if origin is None:
            origin = moment
        if last is not None and moment > last and (speed is not None or pushed % _BATCH == 0):
            due = began + (moment - origin) / 1000 / speed if speed is not None else None
            if due is None or due - time.monotonic() > frame_s / 4:
                if not flush(moment - 1):
                    return pushed
                while due is not None and (left := due - time.monotonic()) > 0:
                    time.sleep(min(left, frame_s))
                    if not after_step(moment - 1):
                        return pushed
        waiting.setdefault(stream, []).append((moment, data))
        last = max(moment, last) if last is not None else moment
        pushed += 1
    if last is not None:
        flush(last, 0)
    return pushed


def _named(recording: Recording) -> Iterator[tuple[int, str, bytes]]:
    for moment, data in recording.events():
        yield moment, recording.stream, data
