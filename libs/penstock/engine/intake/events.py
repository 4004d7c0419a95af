"""Conversion of events to columns of term ids. An event is a set of triples with one time (semantics.md §1).

The native module parses N-Triples. One call parses many events, provided that these events have no blank nodes.
`penstock.rdf` parses other formats. The scope of a blank node label is the event that contains the label.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Triples
from penstock.engine.intake.event_triples import triples_to_tuples
from penstock.engine.limits import MAX_TIME_MS
from penstock.errors import DataError, PenstockError
from penstock.rdf.formats import Format
from penstock.rdf.parsing import Converted, parse
from penstock.rdf.patches import Patch, is_patch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTuple

CONVERTED_BYTES: Final = 256 << 20
"""Maximum size in bytes of the N-Quads to which a push converts events without the engine's lock. The events beyond
this size are converted under the lock.
"""
EventData: TypeAlias = str | bytes | Iterable[object]
Conversions: TypeAlias = dict[int, Converted | str]
"""For each converted position in the push: the event as N-Quads, or the reason why the event cannot be converted."""
_Cell = TypeVar("_Cell", bound=np.generic)


@dataclass(slots=True)
class Events:
    """Parsed events. Event i has the time `times[i]` (ms) and `counts[i]` triples. The triples of an event are
    contiguous in the columns `s`, `p`, `o`. If `counts` is None, every event has one triple. `originals` contains the
    events in the form in which they were pushed. `removed` contains 1 for each triple that an event removes, and 0 for
    each other triple. If `removed` is None, no event removes triples.
    """

    times: NDArray[np.int64]
    counts: NDArray[np.int64] | None
    s: Ids
    p: Ids
    o: Ids
    originals: Sequence[EventData]
    removed: NDArray[np.uint8] | None = None

    def of_triples(self, of_events: NDArray[_Cell]) -> NDArray[_Cell]:
        """Repeat each event's value for each triple of the event."""
        return of_events if self.counts is None else np.repeat(of_events, self.counts)

    def original(self, event: int) -> bytes:
        """Return the original bytes of the event with the number `event` (see `original_bytes`)."""
        return original_bytes(self.originals[event])


@dataclass(slots=True)
class BadEvent:
    """An invalid event, and the reason why the event is invalid. `place` is the position of the event in the push."""

    time: int | None
    data: bytes
    reason: str
    place: int = 0


@dataclass(slots=True)
class _Parts:
    """Intermediate results of a push, by the position of the event. Each event has one of three results: the columns of
    the event, the reason why the event is invalid, or the converted event.
    """

    rows: dict[int, tuple[Ids, Ids, Ids]] = field(default_factory=dict)
    removed: dict[int, NDArray[np.uint8]] = field(default_factory=dict)  # only for events in RDF Patch
    bad: dict[int, str] = field(default_factory=dict)
    converted: Conversions = field(default_factory=dict)


def original_bytes(data: EventData) -> bytes:
    """Return the text of an event in UTF-8. For rdflib triples, the text is N-Triples. If the triples are invalid, the
    text is the Python `repr` of the triples.
    """
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode("utf-8", "surrogatepass")
    try:
        flat = triples_to_tuples(data)
    except DataError:
        return repr(data).encode()
    terms = native.TextTerms()
    ids = np.array([terms.id_of(*term) for term in flat], np.uint64)
    return Triples([ids[::3], ids[1::3], ids[2::3]], len(ids) // 3, terms).to_ntriples().encode()


class EventParser:
    """Parses events. `dictionary` assigns ids to the terms. `max_bytes` is the maximum size of the text of one event.

    The method `convert` does the slow part of the work. This method needs neither the dictionary nor the engine's lock.
    """

    def __init__(self, dictionary: native.Dictionary, max_bytes: int) -> None:
        self.dictionary = dictionary
        self.max_bytes = max_bytes

    def convert(self, events: Sequence[tuple[object, EventData]], syntax: str) -> Conversions:
        """Convert events to N-Quads, unless the native module can parse the format `syntax`. Returns, by position, the
        converted events and the errors.
        """
        fmt = _foreign(syntax)
        found: Conversions = {}
        if fmt is None:
            return found
        left = CONVERTED_BYTES
        for i, (_, data) in enumerate(events):
            if isinstance(data, (str, bytes)) and left > 0:
                made = self._converted(data, fmt, left)
                if made is not None:
                    found[i] = made
                left -= made.size if isinstance(made, Converted) else 0
        return found

    def _converted(self, data: str | bytes, fmt: Format, max_bytes: int) -> Converted | str | None:
        try:
            text = encoded(data)
            return Converted.of(text, fmt, max_bytes) if len(text) <= self.max_bytes else None
        except DataError as error:
            return str(error)
        except Exception:  # noqa: BLE001 - `parse` raises the same error
            return None

    def parse(
        self, events: Sequence[tuple[object, EventData]], syntax: str, converted: Conversions | None = None
    ) -> tuple[Events, list[BadEvent]]:
        """Return the valid events in order, and the invalid events. `converted` is the result of `convert` for the same
        events. If an event is missing in `converted`, this method converts the event.
        """
        parts = _Parts(converted=converted or {})
        # Nearly all times are plain integers, and nearly all data are bytes. The function calls handle the exceptions.
        times = [
            time if type(time) is int and -MAX_TIME_MS < time < MAX_TIME_MS else self._time(i, time, parts)
            for i, (time, _) in enumerate(events)
        ]
        data = [event if type(event) is bytes else _materialised(event) for _, event in events]
        together = [i for i, text in enumerate(data) if _joinable(text, syntax, self.max_bytes) and i not in parts.bad]
        if len(together) > 1:
            # if the result is None, the remaining events are parsed separately
            whole = self._parse_together(data, together, parts)
            if whole is not None:
                counts, parsed = whole
                columns = parsed.subjects, parsed.predicates, parsed.objects
                return Events(np.array(times, np.int64), counts, *columns, data), []
        for i in range(len(data)):
            if i not in parts.bad and i not in parts.rows:
                self._parse_one(i, data[i], syntax, parts)
        good = [i for i in range(len(data)) if i not in parts.bad]
        bad = [BadEvent(times[i], original_bytes(data[i]), reason, i) for i, reason in sorted(parts.bad.items())]
        return self._collect(times, data, good, parts), bad

    def _collect(
        self, times: Sequence[int | None], data: Sequence[EventData], good: Sequence[int], parts: _Parts
    ) -> Events:
        rows = [parts.rows[i] for i in good]
        columns = [np.concatenate([row[c] for row in rows]) if rows else np.empty(0, np.uint64) for c in range(3)]
        return Events(
            np.array([times[i] for i in good], np.int64),
            np.array([len(row[0]) for row in rows], np.int64),
            columns[0],
            columns[1],
            columns[2],
            [data[i] for i in good],
            np.concatenate([parts.removed[i] for i in good]) if good and parts.removed else None,
        )

    def _time(self, index: int, time: object, parts: _Parts) -> int | None:
        """Return the time of an event as an int, or record the event as invalid."""
        try:
            return checked_time(time)
        except DataError as error:
            parts.bad[index] = str(error)
            return None

    # ---- one event per call
    def _parse_one(self, index: int, data: EventData, syntax: str, parts: _Parts) -> None:
        try:
            if is_patch(syntax) and isinstance(data, (str, bytes)):
                patch = Patch.parse(self.dictionary, self.text(data))
                parts.rows[index] = patch.subjects, patch.predicates, patch.objects
                parts.removed[index] = patch.removed
                return
            parts.rows[index] = self._columns(data, syntax, parts.converted.pop(index, None))
        except DataError as error:
            parts.bad[index] = str(error)
        except PenstockError:
            raise
        except Exception as error:  # noqa: BLE001 - no error of one event may affect the others
            parts.bad[index] = f"{type(error).__name__}: {error}"

    def _columns(self, data: EventData, syntax: str, converted: Converted | str | None) -> tuple[Ids, Ids, Ids]:
        if isinstance(converted, str):
            raise DataError(converted)
        if not isinstance(data, (str, bytes)):
            return self._intern(triples_to_tuples(data))
        text = self.text(data)
        if syntax == "nt":
            parsed = native.parse_nquads(self.dictionary, text, quads=False)
            return parsed.subjects, parsed.predicates, parsed.objects
        quads = parse(self.dictionary, text, syntax) if converted is None else converted.quads(self.dictionary)
        if quads.graphs.any():
            raise DataError("an event is a set of triples: it cannot name graphs")
        return quads.subjects, quads.predicates, quads.objects

    def text(self, data: str | bytes) -> bytes:
        """Return the text of an event in UTF-8. DataError if the text is too large."""
        text = encoded(data)
        if len(text) > self.max_bytes:
            raise DataError(f"an event of {len(text)} bytes (max_event_bytes is {self.max_bytes})")
        return text

    def _intern(self, flat: list[TermTuple]) -> tuple[Ids, Ids, Ids]:
        ids = self.dictionary.intern_many(flat)
        return ids[0::3].copy(), ids[1::3].copy(), ids[2::3].copy()

    # ---- many events per call
    def _parse_together(
        self, data: Sequence[EventData], chosen: Sequence[int], parts: _Parts
    ) -> tuple[NDArray[np.int64], native.ParsedQuads] | None:
        """Parse events without blank nodes in one call of the native parser. In the parser's input, each line begins
        with the position of the line's event, in place of a time.

        If all events of the push are parsed, the call returns the number of triples of each event, and all columns.
        Otherwise, the call returns None, and `parts` contains the columns of the parsed events. If an event has a line
        that is not a plain triple, this method does not parse the event. The caller then parses the event separately,
        to get the error of the event.
        """
        lines, first_line = [], []
        count = 0
        for i in chosen:
            text = encoded(data[i]).strip()
            first_line.append(count)
            if text:
                lead = b"\n%d " % i
                joined = lead + text.replace(b"\n", lead)
                count += joined.count(b"\n")
                lines.append(joined)
        try:
            text = b"".join(lines)[1:]
            parsed = native.parse_nquads(
                self.dictionary, text, quads=False, timestamps=True, strict=False, max_bad=count + 1
            )
        except (DataError, MemoryError):
            return None
        positions = np.searchsorted(np.array(first_line), [line - 1 for line, _, _ in parsed.bad], side="right") - 1
        failed = {chosen[position] for position in positions.tolist()}
        starts = np.searchsorted(parsed.timestamps, chosen, side="left")
        ends = np.searchsorted(parsed.timestamps, chosen, side="right")
        if not failed and len(chosen) == len(data):
            return ends - starts, parsed
        for i, start, end in zip(chosen, starts.tolist(), ends.tolist(), strict=True):
            if i not in failed:
                rows = slice(start, end)
                parts.rows[i] = parsed.subjects[rows], parsed.predicates[rows], parsed.objects[rows]
        return None


def checked_time(time: object) -> int:
    """Return an event time as an int. DataError if the time is not an integer, or is out of range."""
    if isinstance(time, bool) or not isinstance(time, (int, np.integer)):
        raise DataError(f"a timestamp is an integer of milliseconds, not {time!r}")
    if not -MAX_TIME_MS < time < MAX_TIME_MS:
        raise DataError(f"timestamp {time} is out of range")
    return int(time)


def _foreign(syntax: str) -> Format | None:
    """Return the format `syntax` if the native module cannot parse this format. Return None for native and unknown
    formats.
    """
    try:
        fmt = Format.named(syntax)
    except DataError:
        return None
    return None if fmt.is_native else fmt


def _materialised(data: EventData) -> EventData:
    """Return text unchanged, and triples as a list. A list is necessary because the dead-letter output can need the
    triples a second time.
    """
    return data if isinstance(data, (str, bytes)) else list(data)


def _joinable(data: EventData, syntax: str, max_bytes: int) -> bool:
    if type(data) is bytes:
        return syntax == "nt" and len(data) <= max_bytes and b"_:" not in data and b"\r" not in data
    if syntax != "nt" or not isinstance(data, (str, bytes)) or len(data) > max_bytes:
        return False
    if isinstance(data, str):
        return "_:" not in data and "\r" not in data and data.isascii()
    return b"_:" not in data and b"\r" not in data


def encoded(data: EventData) -> bytes:
    """Return the text of an event in UTF-8. DataError if the text is not Unicode."""
    if isinstance(data, bytes):
        return data
    assert isinstance(data, str)
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"not Unicode text: {error.reason} at character {error.start}") from error
