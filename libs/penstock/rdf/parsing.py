"""Documents and messages to columns of term ids.

N-Triples and N-Quads go to the native reader as they are. The other formats are read by pyoxigraph, whose parsers keep
lexical forms (its store does not), and pass through N-Quads text: that is several times faster than touching their
terms from Python, and all terms undergo the same checks.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from itertools import islice
from typing import IO, TYPE_CHECKING

import numpy as np
import pyoxigraph

from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.store._native import BlankScope, parse_nquads

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.store._native import Dictionary, Ids, ParsedQuads

_QUADS_PER_PART = 16_384  # of a document that pyoxigraph reads

_PYOXIGRAPH = {
    Format.TURTLE: pyoxigraph.RdfFormat.TURTLE,
    Format.TRIG: pyoxigraph.RdfFormat.TRIG,
    Format.RDF_XML: pyoxigraph.RdfFormat.RDF_XML,
    Format.JSON_LD: pyoxigraph.RdfFormat.JSON_LD,
}
_POSITION = re.compile(r"^(?:Parser error )?(?:at line \d+ )?(?:column \d+)?[: ]*")


@dataclass(frozen=True, slots=True)
class Quads:
    """Columns of term ids, one row a statement; graph 0 is the default graph."""

    subjects: Ids
    predicates: Ids
    objects: Ids
    graphs: Ids

    def __len__(self) -> int:
        return len(self.subjects)

    @classmethod
    def of(cls, parsed: ParsedQuads) -> Quads:
        """Take the columns of what the native reader gives."""
        return cls(parsed.subjects, parsed.predicates, parsed.objects, parsed.graphs)

    @classmethod
    def joined(cls, parts: list[Quads]) -> Quads:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, dtype=np.uint64)
        return cls(
            np.concatenate([none, *(part.subjects for part in parts)]),
            np.concatenate([none, *(part.predicates for part in parts)]),
            np.concatenate([none, *(part.objects for part in parts)]),
            np.concatenate([none, *(part.graphs for part in parts)]),
        )


def parse(
    dictionary: Dictionary,
    data: bytes | str,
    format: str | Format = Format.N_TRIPLES,  # noqa: A002 - a public name
    base: str | None = None,
    *,
    keep: bool = False,
) -> Quads:
    """Parse one message or small document, whole or not at all.

    Blank nodes are this document's own, whatever their labels. `keep`: new terms are kept for ever (stored data).
    DataError with line and column where the text is not what the format says.
    """
    fmt = format if isinstance(format, Format) else Format.named(format)
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    if fmt.is_native:
        return Quads.of(parse_nquads(dictionary, raw, quads=fmt is Format.N_QUADS, keep=keep))
    return Quads.joined(list(parse_other(dictionary, io.BytesIO(raw), fmt, base, keep=keep)))


def parse_other(
    dictionary: Dictionary, file: IO[bytes], fmt: Format, base: str | None, *, keep: bool = False
) -> Iterator[Quads]:
    """Parse a document in a format of pyoxigraph's from an open file, in parts of bounded size."""
    scope = BlankScope()
    statements = _statements(file, fmt, base)
    while part := _next_part(statements):
        text = pyoxigraph.serialize(part, format=pyoxigraph.RdfFormat.N_QUADS)
        assert text is not None  # it is when no output file is given
        yield Quads.of(parse_nquads(dictionary, text, scope=scope, keep=keep))


def _statements(file: IO[bytes], fmt: Format, base: str | None) -> Iterator[pyoxigraph.Quad]:
    try:
        return iter(pyoxigraph.parse(file, format=_PYOXIGRAPH[fmt], base_iri=base))
    except ValueError as error:
        raise DataError(f"base IRI: {error}") from error


def _next_part(statements: Iterator[pyoxigraph.Quad]) -> list[pyoxigraph.Quad]:
    try:
        return list(islice(statements, _QUADS_PER_PART))
    except SyntaxError as error:
        reason = _POSITION.sub("", error.msg) or error.msg
        where = "" if error.lineno is None else f"line {error.lineno}, column {error.offset or 1}: "
        raise DataError(where + reason) from error
