"""Records of any topic as objects: Avro of internal ones, headers of what was refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.ingest.refused_records import read_refused
from penstock.wire import decode

if TYPE_CHECKING:
    from penstock.log import Message


def record_of(message: Message) -> Any:
    """What a message says."""
    refused = any(name == "source" for name, _ in message.headers)
    return read_refused(message) if refused else decode(message.value or b"")
