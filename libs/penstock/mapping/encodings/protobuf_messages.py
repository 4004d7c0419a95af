"""Decoding of messages in Protocol Buffers to JSON texts. A mapping reads these texts like other JSON messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import DataError
from penstock.mapping.encodings.protobuf_schema import compile_protobuf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.mapping.encodings.protobuf_schema import ProtobufFile
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.mapping_limits import MappingLimits

_HEADER: Final = 5  # bytes: a zero, and the schema id
_MAX_ID: Final = (1 << 31) - 1
_MAX_INDEXES: Final = 100
"""Depth of a nested message type: protoc allows fewer."""


class ProtobufMessages:
    """Decodes the messages of a stream.

    `schema`: the .proto file with the type of all messages, as in the declaration. `message`: the name of this type.
    None: the first type of the file. If `schema` is None, messages have Confluent's wire format: each message begins
    with a zero byte, four bytes with the id of the schema in the registry, and the place of the type in the schema.
    """

    def __init__(self, schema: str | None, message: str | None, limits: MappingLimits) -> None:
        self._limits = limits
        self._file = None if schema is None else compile_protobuf(schema, limits)
        self._root = 0 if self._file is None else _root(self._file, message)

    def json_texts(self, messages: Sequence[bytes], registry: SchemaRegistry | None) -> list[bytes | str]:
        """Return the JSON text of each message in UTF-8. For a message that cannot be decoded, return the reason as a
        `str`.

        UnavailableError if the registry is unavailable.
        """
        if self._file is not None:
            return self._decoded(self._file, self._root, messages, 0)
        found: list[bytes | str] = [""] * len(messages)
        by_type: dict[tuple[int, tuple[int, ...], int], list[int]] = {}
        for place, data in enumerate(messages):
            if len(data) <= _HEADER or data[0] != 0:
                found[place] = "the message does not begin with a zero byte, a schema id and the place of a type"
                continue
            try:
                path, end = _indexes(data)
            except DataError as error:
                found[place] = str(error)
                continue
            by_type.setdefault((int.from_bytes(data[1:_HEADER], "big"), path, end), []).append(place)
        for (number, path, end), places in by_type.items():
            try:
                file, root = _of_id(registry, number, path)
                texts = self._decoded(file, root, [messages[place] for place in places], end)
            except DataError as error:
                texts = [str(error)] * len(places)
            for place, text in zip(places, texts, strict=True):
                found[place] = text
        return found

    def _decoded(self, file: ProtobufFile, root: int, messages: Sequence[bytes], skip: int) -> list[bytes | str]:
        limits = self._limits
        return file.schema.decode(
            root, messages, skip, limits.max_json_depth, limits.decoded_kib << 10, limits.decoded_factor
        )


def _root(file: ProtobufFile, message: str | None) -> int:
    if message is None:
        return file.by_index[0,]
    if message not in file.by_name:
        raise DataError(
            f"the Protobuf schema has no message type {message!r:.80}; it has {', '.join(file.by_name):.200}"
        )
    return file.by_name[message]


def _of_id(registry: SchemaRegistry | None, number: int, path: tuple[int, ...]) -> tuple[ProtobufFile, int]:
    """Return the decoders for a schema id, and the number of the message type at a place (`path`) in this schema."""
    if number > _MAX_ID:
        raise DataError(f"schema ids are at most {_MAX_ID}, not {number}")
    if registry is None:
        raise DataError(f"the message has schema id {number}, but no schema registry is set")
    file = registry.protobuf(number)
    if path not in file.by_index:
        raise DataError(f"schema id {number} has no message type at {list(path)}")
    return file, file.by_index[path]


def _indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """Return the place of the message type in the schema, and the number of bytes before the encoded fields. These
    bytes are zigzag numbers: the length of the place, then the elements of the place. The length 0 means the first
    type.
    """
    if data[_HEADER] == 0:
        return (0,), _HEADER + 1
    count, at = _zigzag(data, _HEADER)
    if not 0 < count <= _MAX_INDEXES:
        raise DataError(f"the place of the message type has {count} elements; it has 1 to {_MAX_INDEXES}")
    path = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        path.append(index)
    return tuple(path), at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    found = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise DataError("the place of the message type is not complete")
