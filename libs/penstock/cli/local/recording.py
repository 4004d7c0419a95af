"""Recorded streams, and their replay in time order. A file has lines of the form `TIMESTAMP_MS <s> <p> <o> .`. In a
file of RDF Patches (*.rdfp, *.rdfp.gz), a row of a patch follows each timestamp: `TIMESTAMP_MS A <s> <p> <o> .`.

Consecutive lines with the same timestamp form one event. The engine accepts or rejects an event as a whole. Blank node
labels are scoped to the event.
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
from penstock.rdf.patches import PATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from penstock.engine import Engine

Event = tuple[int, bytes]

_BATCH = 2000  # events per push when replaying at full speed
_FRAME_S = 0.1  # interval between clock checks while idle


@dataclass(frozen=True, slots=True)
class Recording:
    """A stream and the file with its events. The file name "-" means standard input."""

    stream: str
    path: str

    @property
    def format(self) -> str:
        """The format of the events."""
        return PATCH if self.path.removesuffix(".gz").endswith(".rdfp") else "nt"

    def open(self) -> BinaryIO:
        """Open the file. Decompresses it if the name ends with .gz."""
        if self.path == "-":
            return sys.stdin.buffer
        if self.path.endswith(".gz"):
            return cast("BinaryIO", gzip.open(self.path, "rb"))
        return Path(self.path).open("rb")

    def events(self) -> Iterator[Event]:
        """Yield (time in ms, text in `format`) for each event, in file order."""
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
            raise DataError(
                f"{self.path}, line {number}: a line must start with a timestamp in milliseconds, not {shown!r}"
            ) from None


def replay(
    engine: Engine,
    recordings: Sequence[Recording],
    *,
    speed: float | None,
    after_step: Callable[[int], bool],
    lateness_ms: int = 0,
    start_ms: int | None = None,
) -> int:
    """Push all events in time order, at `speed` seconds of event time per second. None: as fast as possible.

    `after_step(t)` is called each time that all events up to and including t are pushed. If it returns False, the
    replay ends. Events before `start_ms` are skipped. All streams advance together, so that an idle stream does not
    hold back the other streams. The events of a file can be out of order by at most `lateness_ms`. Until the end, the
    watermarks therefore stay `lateness_ms` behind the events. Returns the number of pushed events. DataError if the
    formats of a stream's files differ.
    """
    formats = {recording.stream: recording.format for recording in recordings}
    if any(formats[recording.stream] != recording.format for recording in recordings):
        raise DataError("the files of a stream have different formats: either all of them end with .rdfp, or none")
    player = _Player(engine, formats, speed, lateness_ms, after_step)
    for moment, stream, data in heapq.merge(*map(_named, recordings), key=lambda event: event[0]):
        if start_ms is not None and moment < start_ms:
            continue
        if not player.reach(moment):
            return player.taken
        player.take(moment, stream, data)
    player.end()
    return player.taken


class _Player:
    """Buffers events for an engine. The player pushes many events at once, but no event before its time."""

    def __init__(
        self,
        engine: Engine,
        formats: dict[str, str],
        speed: float | None,
        lateness_ms: int,
        after_step: Callable[[int], bool],
    ) -> None:
        self._engine = engine
        self._formats = formats  # by stream
        self._speed = speed
        self._lateness_ms = lateness_ms
        self._after_step = after_step
        self._waiting: dict[str, list[Event]] = {}
        self._began = time.monotonic()
        self._first: int | None = None
        self._last: int | None = None
        self.taken = 0

    def take(self, moment: int, stream: str, data: bytes) -> None:
        """Add an event to the buffer."""
        self._waiting.setdefault(stream, []).append((moment, data))
        self._first = moment if self._first is None else self._first
        self._last = moment if self._last is None else max(moment, self._last)
        self.taken += 1

    def reach(self, moment: int) -> bool:
        """Push buffered events that are due before the next event, and wait until the next event is due. `moment`: the
        time of the next event. Returns False if the replay is to end.
        """
        if self._first is None or self._last is None or moment <= self._last:
            return True
        if self._speed is None:
            return self.taken % _BATCH != 0 or self._push(moment - 1, self._lateness_ms)
        due = self._began + (moment - self._first) / 1000 / self._speed
        if due - time.monotonic() <= _FRAME_S / 4:
            return True
        if not self._push(moment - 1, self._lateness_ms):
            return False
        while (left := due - time.monotonic()) > 0:
            time.sleep(min(left, _FRAME_S))
            if not self._after_step(moment - 1):
                return False
        return True

    def end(self) -> None:
        """Push the remaining events, at the end of the replay."""
        if self._last is not None:
            self._push(self._last, 0)

    def _push(self, until: int, behind_ms: int) -> bool:
        for stream, events in self._waiting.items():
            self._engine.push_events(stream, events, self._formats[stream])
        self._waiting.clear()
        for stream in self._formats:
            self._engine.advance(stream, until - behind_ms)
        return self._after_step(until)


def _named(recording: Recording) -> Iterator[tuple[int, str, bytes]]:
    for moment, data in recording.events():
        yield moment, recording.stream, data
