"""Checks of the messages of a Flight request. The checks run while the bytes of a message arrive, before Flight decodes
the message.

If gRPC or Arrow has compressed a message, Flight decompresses the message as a whole. A megabyte can then become many
gigabytes. Clients of the dictionary compress nothing.
"""

from __future__ import annotations

from typing import Final

from penstock.arrow_messages import check_metadata
from penstock.errors import DataError

_PREFIX_BYTES: Final = 5  # prefix of a gRPC message: whether the message is compressed, and its length
_HEAD_BYTES: Final = 1 << 20
_BYTES: Final = 2  # wire type of a protobuf field
_METADATA, _BODY = 2, 1000  # fields of FlightData


class MessageCheck:
    """Checks the gRPC messages of one request. Retains at most the first MiB of a message. All fields except the body
    must end before this limit.
    """

    __slots__ = ("_head", "_rest")

    def __init__(self) -> None:
        self._head = bytearray()
        self._rest = 0  # bytes until the next message

    def accepts(self, data: memoryview) -> bool:
        """Read the next bytes of the request. Returns False if a message is compressed, or if its fields do not have
        the form of FlightData. Flight's other types of messages are accepted if their fields have this form.
        """
        at = 0
        while at < len(data):
            if self._rest:
                step = min(self._rest, len(data) - at)
                self._rest -= step
            else:
                step = min(self._missing(), len(data) - at)
                self._head += data[at : at + step]
                if not self._missing() and not self._finish_head():
                    return False
            at += step
        return True

    def _length(self) -> int:
        return int.from_bytes(self._head[1:_PREFIX_BYTES], "big")

    def _missing(self) -> int:
        """Return the number of bytes that are still missing from the head of the message."""
        if len(self._head) < _PREFIX_BYTES:
            return _PREFIX_BYTES - len(self._head)
        return _PREFIX_BYTES + min(self._length(), _HEAD_BYTES) - len(self._head)

    def _finish_head(self) -> bool:
        """Check the head of a message, and skip the rest of the message."""
        length = self._length()
        head = bytes(self._head[_PREFIX_BYTES:])
        compressed = self._head[0] != 0
        self._head.clear()
        self._rest = length - len(head)
        return not compressed and _acceptable(head, length)


def _acceptable(head: bytes, length: int) -> bool:
    """Return whether a message of `length` bytes is accepted. `head`: the message's first bytes. The fields of the
    message must have ascending numbers, so that no field replaces a field that was checked. The body must be the last
    field.
    """
    try:
        at, last = 0, 0
        while at < length:
            tag, at = _varint(head, at)
            size, at = _varint(head, at)
            number, wire_type = tag >> 3, tag & 7
            if wire_type != _BYTES or number <= last:
                return False
            if number == _BODY:
                return at + size == length
            if at + size > len(head):
                return False
            if number == _METADATA:
                check_metadata(head[at : at + size])
            at, last = at + size, number
    except (IndexError, DataError):
        return False
    return True


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a protobuf varint and the position after the varint. IndexError if the varint is incomplete or too
    long.
    """
    value = 0
    for shift in range(0, 64, 7):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError
