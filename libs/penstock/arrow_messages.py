"""Checks of Arrow messages from the network, before the messages are decompressed."""

from __future__ import annotations

import struct
from typing import Final

from flatbuffers import encode, number_types, packer
from flatbuffers.table import Table

from penstock.errors import DataError

_SCHEMA: Final = 1
_RECORD_BATCH: Final = 3
# Places in the virtual tables of Arrow's Message.fbs: 4 + 2 times the number of the field.
_HEADER_TYPE: Final = 4 + 2 * 1  # Message.header_type
_HEADER: Final = 4 + 2 * 2  # Message.header
_COMPRESSION: Final = 4 + 2 * 3  # RecordBatch.compression


def check_metadata(metadata: bytes) -> None:
    """Check the metadata of one Arrow message, given as a flatbuffer without its length prefix. Accepts schemas and
    uncompressed record batches. DataError for any other message. A few kilobytes of compressed data can stand for
    gigabytes, and so can rows that refer to a dictionary.
    """
    try:
        message = Table(metadata, encode.Get(packer.uoffset, metadata, 0))
        kind = message.Offset(_HEADER_TYPE)
        number = message.Get(number_types.Uint8Flags, message.Pos + kind) if kind else 0
        if number == _SCHEMA:
            return
        if number != _RECORD_BATCH:
            raise DataError("only schemas and record batches are accepted, and no dictionary-encoded columns")
        batch = Table(metadata, 0)
        message.Union(batch, message.Offset(_HEADER))
        compressed = batch.Offset(_COMPRESSION)
    except (struct.error, IndexError, TypeError, ValueError) as error:
        raise DataError(f"not the metadata of an Arrow message: {error}") from error
    if compressed:
        raise DataError("compressed record batches are not accepted")
