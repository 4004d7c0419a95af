"""A second implementation of a shard's layout, from docs/store-layout.md: looks lists up in bytes that a function reads.

It reads whole lists of the newest published snapshot, while no commit is in progress. The names are those of the page.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[[int, int], bytes]
    """Return `length` bytes from an offset; both are multiples of 8."""

MAGIC, VERSION = 0x314B434F54534E50, 3
PARTS, CHUNKS = 64, 19
MASK = (1 << 64) - 1
EXTENT, REMOVAL = 15, 14  # tags
OFFSET = (1 << 43) - 1  # of an extent in its head; bit 59 marks a list that was rewritten
SCANNED = 32  # positions of a record's labels that are scanned
BUCKET_BYTES, SLOTS = 128, 7
HEADER = struct.Struct("<QIIIIQQ8Q")
OUT, IN = 0, 1


class LayoutError(Exception):
    """The bytes are no region of this version."""


def mix(x: int) -> int:
    """Return the hash of a word."""
    x ^= x >> 32
    x = x * 0x9E3779B97F4A7C15 & MASK
    x ^= x >> 29
    x = x * 0xBF58476D1CE4E5B9 & MASK
    return x ^ x >> 32


def reduce(hashed: int, n: int) -> int:
    """Map a hash onto 0..n-1 by its high bits."""
    return hashed * n >> 64


class RegionReader:
    """Looks up lists of one shard."""

    def __init__(self, read: Read) -> None:
        self._read = read
        header = read(0, 4096)
        magic, version, self.shard, self.shards, _, self.epoch, self._seed, *words = HEADER.unpack_from(header)
        if (magic, version) != (MAGIC, VERSION):
            raise LayoutError(f"magic {magic:#x}, version {version}")
        self.published, self.edges = words[4], words[7]
        self._tables = struct.unpack_from(f"<{PARTS}Q", header, HEADER.size)
        self._chunks = struct.unpack_from(f"<{CHUNKS}Q", header, HEADER.size + 8 * PARTS)

    def neighbours(self, vertex: int, label: int, direction: int) -> list[int]:
        """Return the values of a key's list."""
        entry = self._entry(vertex, label, direction)
        return [] if entry is None else self._list(*self._words(entry, 2))

    def vertices(self, label: int, direction: int) -> list[int]:
        """Return the vertices with an edge of a label."""
        chunk = (label // 64).bit_length()
        first = 0 if chunk == 0 else 64 << (chunk - 1)
        if self._chunks[chunk] == 0:
            return []
        row = self._chunks[chunk] + (label - first) * 40
        return self._list(*self._words(row + 8 + 16 * direction, 2))

    def _words(self, offset: int, count: int) -> tuple[int, ...]:
        return struct.unpack(f"<{count}Q", self._read(offset, 8 * count))

    def _list(self, state: int, head: int) -> list[int]:
        length = state & 0xFFFFFFFF
        values: list[int] = []
        offset = head & OFFSET
        if length and head >> 60 != EXTENT:
            values = [head]
        while len(values) < length:
            first, following = self._words(offset, 2)
            count = min(first & 0xFFFFFFFF, length - len(values))
            values += self._words(offset + 16, count)
            offset = following
        return _without_removed(values) if state >> 63 else values

    def _entry(self, vertex: int, label: int, direction: int) -> int | None:
        """Return the offset of a list's entry."""
        hashed = self._record_hash(vertex, direction)
        piece = next((ref & 0x0000FFFFFFFFFFF8 for ref in self._slots(hashed, vertex, direction)), 0)
        scanned = 0
        while piece:
            if scanned >= SCANNED:
                return self._by_label(vertex, label, direction)
            capacity, count, following, labels = self._piece(piece)
            if label in labels[:count]:
                return _entry_at(piece, capacity, labels.index(label))
            scanned += count
            piece = following
        return None

    def _by_label(self, vertex: int, label: int, direction: int) -> int | None:
        """Return the offset of the entry by the table's slot of the label."""
        hashed = mix(self._record_hash(vertex, direction) ^ (label * 0xC2B2AE3D27D4EB4F & MASK))
        for ref in self._slots(hashed, vertex, 2 | direction):
            piece, index = ref & 0x0000FFFFFFFFFFF8, ref >> 48
            capacity, _, _, labels = self._piece(piece)
            if labels[index] == label:
                return _entry_at(piece, capacity, index)
        return None

    def _piece(self, offset: int) -> tuple[int, int, int, tuple[int, ...]]:
        """Return capacity, number of labels, next piece, and labels of a directory."""
        [state] = self._words(offset, 1)
        capacity = state >> 12 & 0xFFF
        labels = struct.unpack_from(f"<{capacity}I", self._read(offset + 8, (4 * capacity + 7) & ~7))
        return capacity, state & 0xFFF, state >> 24 << 3, labels

    def _slots(self, hashed: int, vertex: int, kind: int) -> list[int]:
        """Return the refs of the slots with that key and kind."""
        word = self._tables[hashed >> 58]
        table, buckets = word >> 28 << 7, word & (1 << 28) - 1
        found: list[int] = []
        if buckets == 0:
            return found
        bucket = table + 128 + reduce(hashed << 6 & MASK, buckets) * BUCKET_BYTES
        while bucket:
            *slots, overflow, _ = self._words(bucket, 16)
            for key, ref in zip(slots[::2], slots[1::2], strict=True):
                if key == 0:
                    return found
                if key == vertex and ref & 3 == kind:
                    found.append(ref)
            bucket = overflow
        return found

    def _record_hash(self, vertex: int, direction: int) -> int:
        return mix((vertex ^ self._seed) + direction * 0x9E3779B97F4A7C15 & MASK)


def _entry_at(piece: int, capacity: int, index: int) -> int:
    return piece + 8 + ((4 * capacity + 7) & ~7) + 16 * index


def _without_removed(values: list[int]) -> list[int]:
    shown = [value >> 60 != REMOVAL for value in values]
    for value in values:
        if value >> 60 == REMOVAL:
            shown[value & 0xFFFFFFFF] = bool(value >> 32 & 1)
    return [value for value, there in zip(values, shown, strict=True) if there]
