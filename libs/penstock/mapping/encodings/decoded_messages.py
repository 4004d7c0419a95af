"""Messages in a binary format, together with their JSON texts, as in the write-ahead log.

The log contains the JSON text, so that a replay needs no schema registry. The log also contains the original message.
Late events and dead letters therefore contain the original message after a replay, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.stream_mapping import StreamMapping

LOGGED: Final = "x-decoded"
"""The format of logged messages. A logged message begins with eight bytes for the size of the original message, and the
original message. The byte 1 and the JSON text follow. If the message cannot be decoded, the byte 0 and the reason
follow instead.
"""
_SIZE: Final = 8


def logged(data: bytes, text: bytes | str) -> bytes:
    """Return a message in the format LOGGED. `text`: the message as JSON, or a `str` with the reason why the message
    cannot be decoded.
    """
    mark, rest = (b"\1", text) if isinstance(text, bytes) else (b"\0", text.encode("utf-8", "replace"))
    return b"".join((len(data).to_bytes(_SIZE, "big"), data, mark, rest))


def of_logged(data: bytes) -> tuple[bytes, bytes | str]:
    """Return the original message, and the JSON text or reason, of a message that `logged` returned. DataError if the
    data is not in the format LOGGED.
    """
    end = _SIZE + int.from_bytes(data[:_SIZE], "big")
    if len(data) <= end or data[end] > 1:
        raise DataError(f"a message is not in the format {LOGGED}")
    text = data[end + 1 :]
    return data[_SIZE:end], text if data[end] == 1 else text.decode("utf-8", "replace")


def decoded_texts(
    mapping: StreamMapping, messages: Sequence[bytes], registry: SchemaRegistry | None, max_bytes: int
) -> list[bytes | str]:
    """Return the JSON text of each message. For a message that cannot be decoded or that has more than `max_bytes`,
    return the reason as a `str`. UnavailableError if the registry is unavailable.
    """
    large = {place: len(data) for place, data in enumerate(messages) if len(data) > max_bytes}
    if large:
        messages = [b"" if place in large else data for place, data in enumerate(messages)]
    texts = mapping.json_texts(messages, registry)
    for place, size in large.items():
        texts[place] = f"an event of {size} bytes (max_event_bytes is {max_bytes})"
    return texts
