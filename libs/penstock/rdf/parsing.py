"""Documents and messages to columns of term ids.

N-Triples and N-Quads go to the native reader as they are. The other formats are read by pyoxigraph, whose parsers keep
lexical forms (its store does not), and pass through N-Quads text: that is several times faster than touching their
terms from Python, and all terms undergo the same checks.

pyoxigraph bounds neither memory nor time nor stack: documents beyond a small size are parsed in a process of their own
(ADR 52). Whatever a document makes a parser do, it is a DataError of that document.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np
import pyoxigraph

from penstock.core._native import BlankScope, parse_nquads
from penstock.errors import DataError
from penstock.rdf.checks import DocumentCheck, has_declarations
from penstock.rdf.formats import Format
from penstock.rdf.limits import PARSE_LIMITS, ParseLimits
from penstock.rdf.parser_process import POOL, KilledError, memory_message, syntax_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.core._native import Dictionary, Ids, ParsedQuads

_PYOXIGRAPH = {
    Format.TURTLE: pyoxigraph.RdfFormat.TURTLE,
    Format.TRIG: pyoxigraph.RdfFormat.TRIG,
    Format.RDF_XML: pyoxigraph.RdfFormat.RDF_XML,
    Format.JSON_LD: pyoxigraph.RdfFormat.JSON_LD,
}


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
    limits: ParseLimits = PARSE_LIMITS,
) -> Quads:
    """Parse one message or small document, whole or not at all.

    Blank nodes are this document's own, whatever their labels. `keep`: new terms are kept for ever (stored data).
    DataError with line and column where the text is not what the format says; DataError where it exceeds a limit.
    """
    fmt = format if isinstance(format, Format) else Format.named(format)
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    if fmt.is_native:
        return Quads.of(parse_nquads(dictionary, raw, quads=fmt is Format.N_QUADS, keep=keep))
    try:
        return Quads.joined(list(parse_other(dictionary, io.BytesIO(raw), fmt, base, keep=keep, limits=limits)))
    except KilledError:
        return Quads.joined(list(parse_other(dictionary, io.BytesIO(raw), fmt, base, keep=keep, limits=limits)))


def parse_other(
    dictionary: Dictionary,
    file: IO[bytes],
    fmt: Format,
    base: str | None,
    *,
    keep: bool = False,
    limits: ParseLimits = PARSE_LIMITS,
    trusted: bool = False,
) -> Iterator[Quads]:
    """Parse a document in a format of pyoxigraph's from an open file, in parts of bounded size.

    `trusted`: a file that its owner names. It may have a document type declaration (OWL files often have), and does not
    wait for other documents. Its parser has the same bounds.
    """
    scope, triples = BlankScope(), 0
    check = DocumentCheck(fmt, limits, declarations=trusted)
    for text in _nquads(file, fmt, base, limits, check, wait=not trusted):
        quads = Quads.of(parse_nquads(dictionary, text, scope=scope, keep=keep))
        triples += len(quads)
        yield quads
    check.check_triples(triples)


def _nquads(
    file: IO[bytes], fmt: Format, base: str | None, limits: ParseLimits, check: DocumentCheck, *, wait: bool
) -> Iterator[bytes]:
    """Yield a document's statements as N-Quads, in parts; parsed in this process where it is small."""
    first = file.read(limits.small_document_bytes + 1)
    check.feed(first)
    if len(first) <= limits.small_document_bytes and not (fmt is Format.RDF_XML and has_declarations(first)):
        text = _parsed_here(first, fmt, base)
        if text is not None:
            yield text
        return
    waiting = [first]

    def read(size: int) -> bytes:
        start = waiting.pop() if waiting else b""
        block = file.read(size - len(start))
        check.feed(block)
        return start + block

    yield from POOL.parse(read, fmt, base, limits, wait=wait)


def _parsed_here(data: bytes, fmt: Format, base: str | None) -> bytes | None:
    """Return a small document's statements as N-Quads, None where it has none.

    Whatever the document makes the library raise is a DataError: a panic of it is no `Exception`.
    """
    try:
        quads = list(pyoxigraph.parse(data, format=_PYOXIGRAPH[fmt], base_iri=base))
        return pyoxigraph.serialize(quads, format=pyoxigraph.RdfFormat.N_QUADS) if quads else None
    except SyntaxError as error:
        raise syntax_error(error.msg, error.lineno, error.offset) from error
    except ValueError as error:
        raise DataError(f"base IRI: {error}") from error
    except MemoryError as error:
        raise DataError(memory_message(str(error))) from error
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise DataError(f"the parser fails: {type(error).__name__}: {error}") from error
