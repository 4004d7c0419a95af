"""The entries of the write-ahead log. An entry contains an operation that changes the state, and the wall-clock time at
which the operation was applied.

An entry is a line of JSON (operation, wall-clock time, arguments), followed by the operation's data, if there are any.
Depending on the operation, the data are the bytes of events, the bytes of a document, the N-Quads of a change, or a
table. The table contains rows for members of a query set, or keys of members. To recover the state, an engine applies
the entries in order to the checkpoint that precedes them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from penstock.engine.intake.events import checked_time, original_bytes
from penstock.engine.sets.tables import table_of
from penstock.errors import DataError, StorageError
from penstock.query.budget import planning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.engine.intake.events import EventData
    from penstock.engine.limits import Limits


CHANGE = "change"
"""The operation of an entry that the function `changed` has created."""


class Operations(Protocol):
    """The operations that the log records. Parameters and errors: see `penstock.Engine`."""

    @property
    def limits(self) -> Limits:
        """The engine's limits."""

    @property
    def queries(self) -> Mapping[str, Stoppable]:
        """The standing queries by name."""

    @property
    def declare_stream(self) -> Callable[..., object]:
        """Declare a stream."""

    def drop_stream(self, iri: str) -> None:
        """Drop a stream."""

    def advance(self, iri: str | None, timestamp: int, skip: Any = False) -> object:
        """Advance the watermark of a stream. If `iri` is None, advance all input streams."""

    @property
    def register(self) -> Callable[..., object]:
        """Register a standing query."""

    @property
    def register_set(self) -> Callable[..., object]:
        """Register a query set."""

    @property
    def query_sets(self) -> Mapping[str, Changeable]:
        """The query sets by name."""

    def update(self, text: str, base: str | None = None) -> object:
        """Update the stored graph."""

    @property
    def load(self) -> Callable[..., object]:
        """Load a document."""

    def push_events(self, iri: str, events: Any, format: str = "nt") -> object:  # noqa: A002
        """Push events."""


class Stoppable(Protocol):
    """A standing query."""

    def stop(self) -> None:
        """Stop the query."""


class Changeable(Stoppable, Protocol):
    """A query set."""

    def add(self, rows: Any) -> object:
        """Add members."""

    def remove(self, keys: Any) -> int:
        """Remove members."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A logged operation (`verb`), the arguments of the operation, and the bytes of the operation's events or document.
    `wall_ms` is the wall-clock time at which the operation was applied.
    """

    verb: str
    wall_ms: int
    arguments: dict[str, Any]
    data: bytes = field(default=b"", repr=False)

    def encode(self) -> bytes:
        """Return the entry as bytes: a line of JSON with operation, wall-clock time and arguments, and then `data`."""
        head = json.dumps([self.verb, self.wall_ms, self.arguments], separators=(",", ":"))
        return b"%b\n%b" % (head.encode(), self.data)

    @classmethod
    def decode(cls, payload: bytes) -> LogEntry:
        """Return the entry. `payload` is the result of `encode`. StorageError if the entry is corrupt."""
        head, _, data = payload.partition(b"\n")
        try:
            verb, wall_ms, arguments = json.loads(head)
        except ValueError as error:
            raise StorageError(f"an entry of the write-ahead log is corrupt: {error}") from error
        return cls(verb, wall_ms, arguments, data)


def pushed(wall_ms: int, iri: str, events: Sequence[tuple[object, EventData]], syntax: str) -> LogEntry:
    """Return the entry of a push. rdflib triples are logged as N-Triples. Invalid events are also logged, so that the
    replay rejects them again.
    """
    parts, texts = [], []
    for time, data in events:
        text = original_bytes(data)
        texts.append(text)
        parts.append([_time(time), len(text), syntax if isinstance(data, (str, bytes)) else "nt"])
    return LogEntry("push", wall_ms, {"stream": iri, "events": parts}, b"".join(texts))


def changed(wall_ms: int, removed: bytes, added: bytes) -> LogEntry:
    """Return the entry of the write-ahead log for a change of the stored graph. The arguments `removed` and `added` are
    the removed and the added triples, as N-Quads. `GraphChange.of_nquads` reads these N-Quads from the entry.
    """
    return LogEntry(CHANGE, wall_ms, {"removed": len(removed)}, removed + added)


def _time(time: object) -> int | None:
    try:
        return checked_time(time)
    except DataError:
        return None


def apply(entry: LogEntry, engine: Operations) -> None:
    """Apply a logged operation, other than CHANGE, to an engine. StorageError for an unknown operation."""
    if entry.verb == "push":
        _push(entry, engine)
        return
    given = entry.arguments
    match entry.verb:
        case "declare":
            engine.declare_stream(**given)
        case "drop":
            engine.drop_stream(**given)
        case "advance":
            engine.advance(**given)
        case "register":
            with planning(engine.limits, given["text"], accepted=True):
                engine.register(**given)
        case "register_set":
            with planning(engine.limits, given["text"], accepted=True):
                engine.register_set(**given)
        case "add_members":
            _set(engine, given["name"]).add(table_of(entry.data))
        case "remove_members":
            _set(engine, given["name"]).remove(table_of(entry.data))
        case "stop":
            if (query := engine.queries.get(given["name"]) or engine.query_sets.get(given["name"])) is not None:
                query.stop()
        case "update":
            engine.update(**given)
        case "load":
            engine.load(entry.data, **given)
        case _:
            raise StorageError(f"the write-ahead log has an entry of an unknown kind: {entry.verb!r}")


def _set(engine: Operations, name: str) -> Changeable:
    found = engine.query_sets.get(name)
    if found is None:
        raise DataError(f"there is no query set {name}")
    return found


def _push(entry: LogEntry, engine: Operations) -> None:
    at, events = 0, []
    for time, size, syntax in entry.arguments["events"]:
        events.append((syntax, time, entry.data[at : at + size]))
        at += size
    for syntax, run in groupby(events, key=lambda event: event[0]):
        engine.push_events(entry.arguments["stream"], [(time, data) for _, time, data in run], syntax)
