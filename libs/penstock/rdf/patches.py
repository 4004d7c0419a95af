"""RDF Patch, a text format of rows that add and remove triples (https://jena.apache.org/documentation/rdf-patch).

Each row is a line. A row that adds or removes a triple consists of a letter (A or D) and a line of N-Triples. The
native reader parses this line. Prefix rows have no effect, because Penstock stores no prefixes and rows contain
complete IRIs. Header rows have no effect, either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from penstock.core._native import parse_nquads
from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.rdf.id_layout import TAG_BLANK, TAG_SHIFT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Dictionary, Ids

MEDIA_TYPE: Final = "application/rdf-patch"
PATCH: Final = "rdf-patch"
"""The name of the format in the public API (docs/api.md)."""
_NAMES = (PATCH, MEDIA_TYPE, "patch", "rdfp")
_ROWS = {b"A": b"1", b"D": b"0"}  # letter -> what the reader finds in place of a time
_STRING = rb'"(?:[^"\\]|\\.)*"'
_TERM = rb"(?:<[^<>\s]*>|_:\S+|%b(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?)" % _STRING
_PREFIX = rb"(?:%b|[^\s\"<>.:]*:?)" % _STRING
_OTHER = re.compile(
    rb"(?:(?P<begin>TX)|(?P<end>TC)|(?P<abort>TA)|H\s+[^\s\"<>]+\s+%b|PA\s+%b\s+(?:<[^<>\s]*>|%b)|PD\s+%b)\s*\.\s*(?:#.*)?"
    % (_TERM, _PREFIX, _STRING, _PREFIX)
)


def is_patch(name: str) -> bool:
    """Return whether a format name or media type (parameters are ignored) means RDF Patch."""
    return name.partition(";")[0].strip().lower() in _NAMES


def event_format(name: str) -> str:
    """Return the canonical name of a format of events: RDF Patch or an RDF format. DataError if it is unknown."""
    return PATCH if is_patch(name) else Format.named(name).value


def event_media_type(name: str) -> str:
    """Return the media type of a format of events. DataError if it is unknown."""
    return MEDIA_TYPE if is_patch(name) else Format.named(name).media_type


@dataclass(frozen=True, slots=True)
class Patch:
    """The A and D rows of a patch, in order, as columns of term ids. `removed` is 1 for a D row."""

    subjects: Ids
    predicates: Ids
    objects: Ids
    removed: NDArray[np.uint8]

    @classmethod
    def parse(cls, dictionary: Dictionary, data: bytes) -> Patch:
        """Parse a patch that is an event. DataError if a row is invalid, names a graph, or removes a blank node. For an
        invalid row, the error contains the number of the line. For a row with a graph, the error contains the position
        among the A and D rows. DataError also for an aborted or unfinished transaction.
        """
        parsed = parse_nquads(dictionary, _timed(data), timestamps=True)
        if parsed.graphs.any():
            row = int(np.flatnonzero(parsed.graphs)[0])
            raise DataError(f"row {row + 1} of the A and D rows names a graph: a stream has one graph, absorb_into")
        removed = (parsed.timestamps == 0).astype(np.uint8)
        for column in (parsed.subjects, parsed.objects):
            if (column[removed == 1] >> TAG_SHIFT == TAG_BLANK).any():
                raise DataError("a D row has a blank node: the scope of its label is the event, so it names nothing")
        return cls(parsed.subjects, parsed.predicates, parsed.objects, removed)


def _timed(data: bytes) -> bytes:
    """Return the text of a patch with 1 in place of the A of a row, and 0 in place of the D. All other lines become
    empty, so that line numbers do not change.
    """
    lines = data.split(b"\n")
    open_at = 0  # number of the line with TX
    for number, line in enumerate(lines, start=1):
        row = line.strip()
        letter = _ROWS.get(row[:1])
        if letter is not None and row[1:2].isspace():
            at = line.index(row[:1])
            lines[number - 1] = line[:at] + letter + line[at + 1 :]
            continue
        lines[number - 1] = b""
        if not row or row.startswith(b"#"):
            continue
        found = _OTHER.fullmatch(row)
        if found is None:
            raise DataError(f"line {number}: no row of an RDF Patch: {_shown(row)!r}")
        if found["abort"]:
            raise DataError(f"line {number}: TA: the patch was aborted")
        if found["begin"] and open_at:
            raise DataError(f"line {number}: TX in the transaction of line {open_at}")
        if found["end"] and not open_at:
            raise DataError(f"line {number}: TC without TX")
        open_at = number if found["begin"] else 0 if found["end"] else open_at
    if open_at:
        raise DataError(f"line {open_at}: TX without TC")
    return b"\n".join(lines)


def _shown(row: bytes) -> str:
    return row[:60].decode("utf-8", "replace")
