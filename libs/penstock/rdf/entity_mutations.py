"""Events of Wikidata's mutation stream, as RDF Patches.

An event is a JSON object about one entity: `entity_id`, `event_time`, `operation`, and Turtle or N-Triples in
`rdf_added_data`, `rdf_deleted_data`, `rdf_linked_shared_data` and `rdf_unlinked_shared_data`.

An event with operation `import` or `diff` contains the added and the removed triples. `delete` contains no triples, and
`reconcile` contains all present triples of the entity. To compute the triples that `delete` and `reconcile` remove, a
`MutationDecoder` stores the triples of each entity. `decode_difference` stores nothing, and decodes only `import` and
`diff`. Shared data (values and references) can belong to several entities. Shared data are added when an entity links
the data, but are not removed when an entity unlinks the data.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.errors import DataError
from penstock.json_text import parse_json
from penstock.rdf.formats import Format
from penstock.rdf.parsing import Converted

if TYPE_CHECKING:
    from collections.abc import Iterable

MEDIA_TYPE: Final = "application/x-entity-mutation+json"
"""The media type of an event of the mutation stream in Penstock's topics."""
_MAX_BYTES = 16 << 20  # of the N-Triples of one part


class Mutation(NamedTuple):
    """A mutation of an entity: its event time in ms, and an RDF Patch."""

    time_ms: int
    entity: str
    patch: bytes


class _Parts(NamedTuple):
    """The parts of an event: time in ms, entity, operation, and lines of N-Triples."""

    time_ms: int
    entity: str
    operation: str
    removed: list[bytes]
    added: list[bytes]
    linked: list[bytes]

    @classmethod
    def of(cls, data: bytes) -> _Parts:
        event = parse_json(data, "a mutation")
        if not isinstance(event, dict):
            raise DataError("a mutation is a JSON object")
        entity, operation = _text(event, "entity_id"), _text(event, "operation")
        if operation not in ("import", "diff", "delete", "reconcile"):
            raise DataError(f"a mutation is import, diff, delete or reconcile, not {operation[:40]!r}")
        names = ("rdf_deleted_data", "rdf_added_data", "rdf_linked_shared_data")
        removed, added, linked = (_lines(event, name) for name in names)
        time_ms = _milliseconds(_text(event, "event_time"))
        return cls(time_ms, entity, operation, removed, added, linked)


def decode_difference(data: bytes) -> Mutation:
    """Return the mutation of an event with operation `import` or `diff`. DataError if the event is invalid or has
    another operation. Events with other operations do not contain the removed triples.
    """
    event = _Parts.of(data)
    if event.operation not in ("import", "diff"):
        raise DataError(f"{event.entity}: {event.operation} does not contain the triples that it removes")
    return Mutation(event.time_ms, event.entity, _patch(event.removed, [*event.added, *event.linked]))


class MutationDecoder:
    """Decodes mutations. The decoder must get the events of an entity in their order."""

    def __init__(self) -> None:
        self._entities: dict[str, set[bytes]] = {}

    def decode(self, data: bytes) -> Mutation:
        """Return the mutation of an event. DataError if the event is invalid, or deletes an unknown entity."""
        time_ms, entity, operation, removed, added, linked = _Parts.of(data)
        known = self._entities.get(entity, set())
        if operation == "delete":
            if entity not in self._entities:
                raise DataError(f"{entity} is deleted, but no event has named its triples")
            removed = [*removed, *sorted(known)]
            self._entities.pop(entity)
            return Mutation(time_ms, entity, _patch(removed, ()))
        if operation == "reconcile":
            removed = sorted(known - set(added))
            known = set()
        self._entities[entity] = (known - set(removed)) | set(added)
        return Mutation(time_ms, entity, _patch(removed, [*added, *linked]))


def _patch(removed: Iterable[bytes], added: Iterable[bytes]) -> bytes:
    return b"".join([*(b"D %b\n" % line for line in removed), *(b"A %b\n" % line for line in added)])


def _text(event: dict[str, Any], name: str) -> str:
    found = event.get(name)
    if not isinstance(found, str) or not found:
        raise DataError(f"a mutation has a text in {name!r}")
    return found


def _milliseconds(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise DataError(f"event_time is not a time: {text[:40]!r}") from error
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _lines(event: dict[str, Any], name: str) -> list[bytes]:
    """Return the N-Triples lines of the part `name`. [] if the event lacks this part. DataError if the part is invalid
    or too large.
    """
    part = event.get(name)
    if part is None:
        return []
    data, media_type = (part.get("data"), part.get("mime_type")) if isinstance(part, dict) else (None, None)
    if not isinstance(data, str) or not isinstance(media_type, str):
        raise DataError(f'{name} is {{"data": RDF, "mime_type": type}}')
    fmt = Format.named(media_type)
    if fmt is Format.N_TRIPLES:
        fmt = Format.TURTLE  # which N-Triples is a part of
    if fmt is not Format.TURTLE:
        raise DataError(f"{name} is in Turtle or N-Triples, not in {media_type[:40]!r}")
    converted = Converted.of(data.encode("utf-8", "surrogatepass"), fmt, _MAX_BYTES)
    if converted is None:
        raise DataError(f"{name} is too large")
    return [line for text in converted.parts for line in text.split(b"\n") if line]
