"""Idle-source detection. If an input stream is idle for longer than its `idle_timeout_ms`, queries do not wait for this
stream.

The *companions* of a stream are all other input streams that at least one query reads together with this stream. An
idle stream advances to the highest watermark of its companions. If the event time of the idle stream follows the wall
clock, the stream advances at least to the current time minus `idle_timeout_ms` (docs/semantics.md, "Time").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.stream_readers import Readers


@dataclass(slots=True)
class _Heard:
    """The state of a stream after the stream's last change. Also the wall-clock time in ms of the check that noticed
    this change.
    """

    watermark: int | None
    events: int
    wall_ms: int
    follows_wall: bool = False


class IdleSources:
    """Detects idle streams. Each check compares the state of a stream with the state at the previous check. Pushes
    therefore have no additional cost.
    """

    def __init__(self) -> None:
        self._heard: dict[LiveStream, _Heard] = {}

    def look(self, streams: Iterable[LiveStream], readers: Readers, wall_ms: int) -> Iterator[tuple[LiveStream, int]]:
        """Yield each idle input stream that can advance, with its new watermark. The caller must advance the stream
        before the next iteration. `wall_ms` is the current wall-clock time.
        """
        known = [stream for stream in streams if stream.publisher is None]
        self._heard = {stream: self._update(stream, wall_ms) for stream in known}
        for stream, heard in self._heard.items():
            timeout_ms = stream.declaration.idle_timeout_ms
            if wall_ms - heard.wall_ms < timeout_ms:
                continue
            targets = [w for other in _read_with(stream, readers) if (w := other.watermark) is not None]
            if heard.follows_wall:
                targets.append(wall_ms - timeout_ms)
            target = max(targets, default=None)
            if target is not None and (stream.watermark is None or target > stream.watermark):
                heard.watermark = target
                yield stream, target

    def _update(self, stream: LiveStream, wall_ms: int) -> _Heard:
        last = self._heard.get(stream)
        if last is None:
            follows = stream.events > 0 and _follows(stream, wall_ms)
            return _Heard(stream.watermark, stream.events, wall_ms, follows)
        if stream.events != last.events:
            return _Heard(stream.watermark, stream.events, wall_ms, _follows(stream, wall_ms))
        if stream.watermark != last.watermark:  # a call of `Engine.advance`
            return _Heard(stream.watermark, stream.events, wall_ms, last.follows_wall)
        return last


def _follows(stream: LiveStream, wall_ms: int) -> bool:
    """Return whether the stream's event time follows the wall clock, that is, whether the time of the latest event is
    near `wall_ms`.
    """
    if stream.watermark is None:
        return False
    set_ = stream.declaration
    latest = stream.watermark + 1 + set_.lateness_ms
    return abs(wall_ms - latest) <= set_.idle_timeout_ms + set_.lateness_ms


def _read_with(stream: LiveStream, readers: Readers) -> Iterator[LiveStream]:
    """Yield the companions of a stream. A query can read two streams together directly or through derived streams."""
    seen, waiting = {stream}, [stream]
    while waiting:
        for group in readers.of(waiting.pop()):
            near = [*group.streams, *([group.publishes] if group.publishes is not None else [])]
            fresh = [other for other in near if other not in seen]
            seen.update(fresh)
            waiting += fresh
            yield from (other for other in fresh if other.publisher is None)
