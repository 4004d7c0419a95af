"""Decoding of messages in Avro to JSON texts. A mapping reads these texts like other JSON messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.errors import DataError
from penstock.mapping.encodings.avro_schema import compile_avro

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import AvroSchema
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.mapping_limits import MappingLimits

_HEADER: Final = 5  # bytes: a zero, and the schema id
_MAX_ID: Final = (1 << 31) - 1


class AvroMessages:
    """Decodes the messages of a stream.

    `schema`: the schema of all messages, as in the declaration. If it is None, messages have Confluent's wire format:
    each message begins with a zero byte and four bytes with the id of its schema in the registry.
    """

    def __init__(self, schema: Any, limits: MappingLimits) -> None:
        self._limits = limits
        self._schema = None if schema is None else compile_avro(schema, limits)

    def json_texts(self, messages: Sequence[bytes], registry: SchemaRegistry | None) -> list[bytes | str]:
        """Return the JSON text of each message in UTF-8. For a message that cannot be decoded, return the reason as a
        `str`.

        UnavailableError if the registry is unavailable.
        """
        if self._schema is not None:
            return self._decoded(self._schema, messages, 0)
        found: list[bytes | str] = [""] * len(messages)
        by_id: dict[int, list[int]] = {}
        for place, data in enumerate(messages):
            if len(data) < _HEADER or data[0] != 0:
                found[place] = "the message does not begin with a zero byte and a schema id"
            else:
                by_id.setdefault(int.from_bytes(data[1:_HEADER], "big"), []).append(place)
        for number, places in by_id.items():
            try:
                texts = self._decoded(_of_id(registry, number), [messages[place] for place in places], _HEADER)
            except DataError as error:
                texts = [str(error)] * len(places)
            for place, text in zip(places, texts, strict=True):
                found[place] = text
        return found

    def _decoded(self, schema: AvroSchema, messages: Sequence[bytes], skip: int) -> list[bytes | str]:
        limits = self._limits
        return schema.decode(messages, skip, limits.max_json_depth, limits.decoded_kib << 10, limits.decoded_factor)


def _of_id(registry: SchemaRegistry | None, number: int) -> AvroSchema:
    if number > _MAX_ID:
        raise DataError(f"schema ids are at most {_MAX_ID}, not {number}")
    if registry is None:
        raise DataError(f"the message has schema id {number}, but no schema registry is set")
    return registry.avro(number)
