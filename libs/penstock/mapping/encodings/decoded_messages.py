"""Messages in a binary format together with their JSON texts, as the write-ahead log contains them.

The log contains the text, so that a replay needs no schema registry, and the message as it was pushed, so that late
events and dead letters have it after a replay, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.stream_mapping import StreamMapping

LOGGED: Final = "x-decoded"
"""The format of logged messages: the byte 1 and a JSON text, or the byte 0 and the reason why there is none, after the
message and its size in eight bytes.
"""
_SIZE: Final = 8


class DecodedMessage(NamedTuple):
    """A message as it was pushed. `text`: as JSON; or as `str` the reason why it cannot be decoded."""

    data: bytes
    text: bytes | str

    def logged(self) -> bytes:
        """Return the message in the format LOGGED."""
        is_json = isinstance(self.text, bytes)
        text = self.text if isinstance(self.text, bytes) else self.text.encode("utf-8", "replace")
        return b"".join((len(self.data).to_bytes(_SIZE, "big"), self.data, b"\1" if is_json else b"\0", text))

    @classmethod
    def of_logged(cls, logged: bytes) -> DecodedMessage:
        """Return a message in the format LOGGED. DataError if it is not in this format."""
        end = _SIZE + int.from_bytes(logged[:_SIZE], "big")
        if len(logged) <= end or logged[end] > 1:
            raise DataError(f"a message is not in the format {LOGGED}")
        text = logged[end + 1 :]
        return cls(logged[_SIZE:end], text if logged[end] == 1 else text.decode("utf-8", "replace"))


def decode_messages(
    mapping: StreamMapping, messages: Sequence[bytes], registry: SchemaRegistry | None, max_bytes: int
) -> list[DecodedMessage]:
    """Decode messages. Those of more than `max_bytes` are refused. UnavailableError if the registry is unavailable."""
    small = [data if len(data) <= max_bytes else b"" for data in messages]
    texts = mapping.json_texts(small, registry)
    return [
        DecodedMessage(data, text)
        if len(data) <= max_bytes
        else DecodedMessage(data, f"an event of {len(data)} bytes (max_event_bytes is {max_bytes})")
        for data, text in zip(messages, texts, strict=True)
    ]
