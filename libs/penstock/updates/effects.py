"""The effect of an update: the removed quads and the added quads, as ids of the cluster's dictionary."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataError, LimitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids

MAX_INSERTION = 1_000_000
"""Maximum total number of triples that one insertion removes and adds. An insertion is one transaction."""
MEDIA_TYPE = "application/vnd.penstock.effect"
_COLUMNS = 4
_ID = np.dtype("<u8")


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """An evaluated update. `insertions`: the number of an insertion. The snapshot of the evaluation contains this
    insertion and all earlier insertions, and possibly later insertions. `removed`: columns s, p, o and g of the quads
    to remove. `added`: the same columns of the quads to add afterwards. `graphs`: IRIs of the named graphs in column g
    of `added`.
    """

    insertions: int
    removed: Sequence[Ids]
    added: Sequence[Ids]
    graphs: tuple[str, ...]

    def to_bytes(self) -> bytes:
        """Return a line of JSON, followed by the columns as little-endian integers of 64 bits."""
        rows = {"removed": len(self.removed[0]), "added": len(self.added[0])}
        head = {"insertions": self.insertions, **rows, "graphs": self.graphs}
        columns = (column.astype(_ID).tobytes() for column in (*self.removed, *self.added))
        return json.dumps(head).encode() + b"\n" + b"".join(columns)

    @classmethod
    def of_bytes(cls, data: bytes) -> Effect:
        """Return the effect in a message. DataError if the message is malformed."""
        line, _, body = data.partition(b"\n")
        try:
            head = json.loads(line)
            insertions, graphs = int(head["insertions"]), tuple(map(str, head["graphs"]))
            removed, added = int(head["removed"]), int(head["added"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError("not the effect of an update") from error
        if min(removed, added) < 0 or len(body) != _COLUMNS * (removed + added) * _ID.itemsize:
            raise DataError("the effect of an update is incomplete")
        every = np.frombuffer(body, _ID).astype(np.uint64)
        first, second = every[: _COLUMNS * removed], every[_COLUMNS * removed :]
        return cls(insertions, np.split(first, _COLUMNS), np.split(second, _COLUMNS), graphs)


def check_size(rows: int) -> None:
    """Raise LimitError if an insertion has too many triples."""
    if rows > MAX_INSERTION:
        raise LimitError(f"{rows} triples in one insertion (MAX_INSERTION is {MAX_INSERTION})")
