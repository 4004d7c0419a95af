"""Prepares the events of one push before the engine takes its lock: converts documents, and maps the messages of a
stream that has a mapping (ADR 83).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.intake.events import BadEvent, checked_time, original_bytes
from penstock.errors import DataError
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import mapped_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.engine.intake.events import Conversions, EventData, EventParser, Events
    from penstock.mapping.stream_mapping import StreamMapping


class PushedEvents:
    """The events of a push to a stream. `mapping`: the stream's mapping; None if it has none. `format`: the format that
    the caller gives; None means messages for the mapping, or N-Triples if there is no mapping.

    `syntax` is the format of the events that are text.
    """

    def __init__(
        self,
        parser: EventParser,
        mapping: StreamMapping | None,
        events: Sequence[tuple[object, EventData]],
        format: str | None,  # noqa: A002 - as in the public API
    ) -> None:
        chosen = mapped_format(mapping, format)
        self.syntax = "nt" if format is None else format
        self._parser, self._events, self._mapping = parser, events, mapping
        self._conversions: Conversions | None = None
        self._bad: list[BadEvent] = []
        self._places: list[int] | None = None
        if chosen is None or mapping is None:
            self._conversions = parser.convert(events, self.syntax)
            return
        self.syntax = chosen
        self._flat: list[tuple[object, EventData]] = []
        self._places = []
        for place, (time, data) in enumerate(events):
            try:
                made = self._mapped(mapping, time, data)
            except DataError as error:
                self._bad.append(BadEvent(time if type(time) is int else None, original_bytes(data), str(error), place))
            else:
                self._flat += made
                self._places += [place] * len(made)

    def _mapped(self, mapping: StreamMapping, time: object, data: EventData) -> list[tuple[object, EventData]]:
        if not isinstance(data, (str, bytes)):
            return [(time, data)]  # triples
        message = SourceMessage(self._parser.text(data), None if time is None else checked_time(time))
        return [(checked_time(event.time_ms), event.triples) for event in mapping.events(message)]

    def check(self, mapping: StreamMapping | None) -> None:
        """Raise DataError if the stream now has another mapping."""
        if mapping is not self._mapping:
            raise DataError("the stream was declared anew during the push: push the events again")

    def parse(self) -> tuple[Events, list[BadEvent]]:
        """Return the valid events and the invalid ones, each with its original text. Call with the engine's lock."""
        if self._places is None:
            return self._parser.parse(self._events, self.syntax, self._conversions)
        events, bad = self._parser.parse(self._flat, "nt")
        refused = {each.place for each in bad}
        events.originals = [self._events[n][1] for i, n in enumerate(self._places) if i not in refused]
        for each in bad:
            each.place = self._places[each.place]
            each.data = original_bytes(self._events[each.place][1])
        return events, [*self._bad, *bad]
