"""Records of any topic as objects, from the Avro value or, for refused messages, from the headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.ingest.refused_records import read_refused
from penstock.wire import decode

if TYPE_CHECKING:
    from penstock.log import Message


def record_of(message: Message) -> Any:
    """Return a message as an object."""
    refused = any(name == "source" for name, _ in message.headers)
    return read_refused(message) if refused else decode(message.value or b"")
