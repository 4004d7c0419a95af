"""Files of the write-ahead log: numbered entries with checksums.

A file starts with a magic word. An entry consists of a header (length, checksum, number, durable) and a payload. The
numbers of entries increase. If a number is missing, the entry with this number was removed.

`durable` is the number of an earlier entry that was on disk when this entry was written. If that earlier entry is
missing, the log is corrupt. After a crash, entries at the end of a file can be missing or incomplete. Such an end is a
torn tail. No entry in a torn tail was acknowledged.
"""

from __future__ import annotations

import logging
import re
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGIC = b"PSTKWAL1"
MAX_ENTRY_BYTES = 1 << 30
_HEADER = struct.Struct("<IIQQ")
_NUMBER_AT = 8  # offset in the header
_AHEAD = 1_024  # maximum number gap to look for after an invalid entry
_NAME = re.compile(r"log-([0-9]+)")
_log = logging.getLogger("penstock.engine")


@dataclass(frozen=True, slots=True)
class Frame:
    """An entry of a log file (see the module docstring). `end` is the offset in the file at which the entry ends."""

    number: int
    durable: int
    payload: bytes
    end: int


def framed(number: int, durable: int, payload: bytes) -> bytes:
    """Return an entry as bytes: the header and the payload."""
    return _HEADER.pack(len(payload), _checksum(number, durable, payload), number, durable) + payload


def log_path(folder: Path, number: int) -> Path:
    """Return the path of a log file of a data directory."""
    return folder / f"log-{number:06d}"


def log_numbers(folder: Path) -> list[int]:
    """Return the numbers of a data directory's log files, ascending."""
    names = (_NAME.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(name[1]) for name in names if name is not None)


def frames(path: Path, after: int) -> Iterator[Frame]:
    """Yield the entries of a file. An incomplete entry at the end of the file is left out. The number of each entry
    must be greater than `after`. StorageError if the file is corrupt.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read: {error}") from error
    if len(data) < len(MAGIC):
        return  # a crash occurred before the first entry
    if not data.startswith(MAGIC):
        raise StorageError(f"{path}: is not a write-ahead log of this version")
    at, last = len(MAGIC), after
    while at < len(data):
        frame = _frame_at(data, at)
        if frame is None or frame.number <= last:
            _check_tail(path, data, at, last)
            return
        if frame.durable > last:
            raise _missing(path, at, frame.durable)
        last, at = frame.number, frame.end
        yield frame


def _frame_at(data: bytes, at: int) -> Frame | None:
    """Return the entry at offset `at`. Return None if there is no complete entry with a correct checksum at this
    offset.
    """
    if at + _HEADER.size > len(data):
        return None
    length, checksum, number, durable = _HEADER.unpack_from(data, at)
    end = at + _HEADER.size + length
    if length > MAX_ENTRY_BYTES or end > len(data):
        return None
    payload = data[at + _HEADER.size : end]
    return Frame(number, durable, payload, end) if checksum == _checksum(number, durable, payload) else None


def _check_tail(path: Path, data: bytes, at: int, last: int) -> None:
    """Check the rest of a file from offset `at` on, where there is no valid entry. `last` is the number of the last
    valid entry before this offset. StorageError if the rest contains a valid entry whose field `durable` is greater
    than `last`. In this case, the file has lost a durable entry.
    """
    for number in range(last + 1, last + 1 + _AHEAD):
        word, place = struct.pack("<Q", number), at
        while (place := data.find(word, place)) >= 0:
            start = place - _NUMBER_AT
            later = _frame_at(data, start) if start >= at else None
            if later is not None and later.durable > last:
                raise _missing(path, at, later.durable)
            place += 1
    _log.warning("%s: a torn tail of %d bytes is ignored", path, len(data) - at)


def _missing(path: Path, at: int, number: int) -> StorageError:
    return StorageError(f"{path}: corrupt at byte {at}: entry {number}, which was durable, cannot be read")


def _checksum(number: int, durable: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(struct.pack("<QQ", number, durable)))
