"""A file of arrays of 64-bit numbers. The address of an array is (offset, length). The offset and the length are counts
of numbers (8 bytes each).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


class ArrayWriter:
    """Appends arrays to a new file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._length = 0

    def add(self, array: NDArray[Any]) -> tuple[int, int]:
        """Append an array of 64-bit numbers. Returns the address of the array."""
        place = self._length, len(array)
        self._file.write(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        self._length += len(array)
        return place

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ArrayReader:
    """Reads the file of an ArrayWriter."""

    def __init__(self, path: Path) -> None:
        self._words = np.fromfile(path, np.dtype("<u8")).astype(np.uint64, copy=False)

    def ids(self, place: list[int]) -> NDArray[np.uint64]:
        """Return the array at an address as ids (uint64)."""
        return self._words[place[0] : place[0] + place[1]]

    def numbers(self, place: list[int]) -> NDArray[np.int64]:
        """Return the array at an address as signed numbers (int64)."""
        return self.ids(place).view(np.int64)
