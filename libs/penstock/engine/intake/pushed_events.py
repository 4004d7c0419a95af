"""Prepares the events of one push before the engine acquires the engine's lock. The preparation converts documents. It
also maps the messages of a stream that has a mapping (ADR 83, ADR 84).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.intake.events import BadEvent, Events, checked_time, original_bytes
from penstock.errors import DataError
from penstock.mapping.encodings.decoded_messages import LOGGED, decoded_texts, logged, of_logged
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import mapped_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import MappedBatch
    from penstock.engine.intake.events import Conversions, EventData, EventParser
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.stream_mapping import StreamMapping


class PushedEvents:
    """The events of a push to a stream. `mapping` is the stream's mapping, or None if the stream has no mapping.
    `format` is the format that the caller has given. If `format` is None, the events are messages for the mapping. If
    `format` is None and there is no mapping, the events are N-Triples. `registry` contains the schemas of messages in a
    binary format.

    `syntax` is the format of the events that are text. UnavailableError if the registry is unavailable.
    """

    def __init__(
        self,
        parser: EventParser,
        mapping: StreamMapping | None,
        events: Sequence[tuple[object, EventData]],
        format: str | None,  # noqa: A002 - as in the public API
        registry: SchemaRegistry | None = None,
    ) -> None:
        chosen = mapped_format(mapping, None if format == LOGGED else format)
        self.syntax = "nt" if format is None else format
        self._parser, self._events, self._mapping = parser, events, mapping
        self._decoded: dict[int, bytes | str] = {}
        self._conversions: Conversions | None = None
        self._bad: list[BadEvent] = []
        self._places: list[int] | None = None
        if chosen is None or mapping is None:
            self._conversions = parser.convert(events, self.syntax)
            return
        self.syntax = chosen
        self._flat: list[tuple[object, EventData]] = []
        self._places = []
        if mapping.is_encoded:
            self._decode(mapping, registry, is_logged=format == LOGGED)
        messages = self._messages()
        self._batch = mapping.batch(messages, parser.max_bytes)
        for place in range(len(events)) if self._batch is None else self._batch.declined:
            time, data = messages[place]
            try:
                made = self._mapped(mapping, time, data, place)
            except DataError as error:
                original = original_bytes(self._events[place][1])
                self._bad.append(BadEvent(time if type(time) is int else None, original, str(error), place))
            else:
                self._flat += made
                self._places += [place] * len(made)

    def _decode(self, mapping: StreamMapping, registry: SchemaRegistry | None, *, is_logged: bool) -> None:
        """Decode the messages in a binary format. For a push that is replayed from the write-ahead log, use the decoded
        texts in the log.
        """
        places = [i for i, (_, data) in enumerate(self._events) if isinstance(data, (str, bytes))]
        messages = [original_bytes(self._events[place][1]) for place in places]
        if is_logged:
            pairs = [of_logged(data) for data in messages]
            events = list(self._events)
            for place, (message, _) in zip(places, pairs, strict=True):
                events[place] = events[place][0], message
            self._events, texts = events, [text for _, text in pairs]
        else:
            texts = decoded_texts(mapping, messages, registry, self._parser.max_bytes)
        self._decoded = dict(zip(places, texts, strict=True))
        self.syntax = LOGGED

    def _messages(self) -> Sequence[tuple[object, EventData]]:
        """Return the events, with JSON texts in place of messages in a binary format. A message that cannot be decoded
        has an empty text.
        """
        if not self._decoded:
            return self._events
        messages = list(self._events)
        for place, text in self._decoded.items():
            messages[place] = messages[place][0], text if isinstance(text, bytes) else b""
        return messages

    def _mapped(
        self, mapping: StreamMapping, time: object, data: EventData, place: int
    ) -> list[tuple[object, EventData]]:
        if not isinstance(data, (str, bytes)):
            return [(time, data)]  # triples
        decoded = self._decoded.get(place)
        text = self._parser.text(data) if decoded is None else decoded
        if isinstance(text, str):
            raise DataError(text)
        message = SourceMessage(text, None if time is None else checked_time(time))
        return [(checked_time(event.time_ms), event.triples) for event in mapping.interpreted(message)]

    def logged(self, events: Sequence[tuple[object, EventData]]) -> Sequence[tuple[object, EventData]]:
        """Return the events of the push for the write-ahead log, in the format `syntax`."""
        if not self._decoded:
            return events
        return [
            (time, logged(original_bytes(data), self._decoded[place]) if place in self._decoded else data)
            for place, (time, data) in enumerate(events)
        ]

    def check(self, mapping: StreamMapping | None) -> None:
        """Raise DataError if the stream now has another mapping."""
        if mapping is not self._mapping:
            raise DataError("the stream was declared anew during the push: push the events again")

    def parse(self) -> tuple[Events, list[BadEvent]]:
        """Return the valid events and the invalid events, each with its original text. The caller must hold the
        engine's lock.
        """
        if self._places is None:
            return self._parser.parse(self._events, self.syntax, self._conversions)
        if self._batch is not None and not self._places:
            return self._of_batch(self._batch), self._bad
        events, bad = self._parser.parse(self._flat, "nt")
        refused = {each.place for each in bad}
        places = [place for i, place in enumerate(self._places) if i not in refused]
        events.originals = [self._events[place][1] for place in places]
        for each in bad:
            each.place = self._places[each.place]
            each.data = original_bytes(self._events[each.place][1])
        if self._batch is not None:
            events = _merged(self._of_batch(self._batch), self._batch.messages, events, np.array(places, np.int64))
        return events, [*self._bad, *bad]

    def _of_batch(self, batch: MappedBatch) -> Events:
        columns = batch.intern(self._parser.dictionary)
        return Events(batch.times, batch.counts, *columns, [self._events[n][1] for n in batch.messages.tolist()])


def _merged(first: Events, places: np.ndarray, second: Events, second_places: np.ndarray) -> Events:
    """Return the events of `first` and of `second`, in the order of the events' positions in the push."""
    assert first.counts is not None, "events of a mapping have counts"
    assert second.counts is not None, "parsed events have counts"
    order = np.argsort(np.concatenate([places, second_places]), kind="stable")
    counts = np.concatenate([first.counts, second.counts])
    starts = np.cumsum(counts) - counts
    chosen = counts[order]
    rows = np.repeat(starts[order] - (np.cumsum(chosen) - chosen), chosen) + np.arange(chosen.sum())
    s, p, o = (np.concatenate(pair)[rows] for pair in ((first.s, second.s), (first.p, second.p), (first.o, second.o)))
    originals = [*first.originals, *second.originals]
    times = np.concatenate([first.times, second.times])[order]
    return Events(times, chosen, s, p, o, [originals[i] for i in order.tolist()])
