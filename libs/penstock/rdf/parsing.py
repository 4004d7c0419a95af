"""Parsing of documents and messages into columns of term ids.

The native reader parses N-Triples and N-Quads. pyoxigraph parses the other formats, because its parsers, unlike its
store, preserve lexical forms. pyoxigraph writes N-Quads text, and the native reader parses this text. This is several
times faster than a conversion of terms in Python, and applies the same checks to all terms.

pyoxigraph bounds neither memory, time nor stack depth. A document above a small size is therefore parsed in a separate
process (ADR 52). Any failure of that process becomes a DataError for the document.
"""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

import numpy as np
import pyoxigraph

from penstock.core._native import BlankScope, parse_nquads
from penstock.errors import DataError
from penstock.rdf.checks import DocumentCheck, has_declarations
from penstock.rdf.formats import Format
from penstock.rdf.parse_limits import PARSE_LIMITS, ParseLimits
from penstock.rdf.parser_process import POOL, KilledError, memory_message, syntax_error

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from penstock.core._native import Dictionary, Ids, ParsedQuads

_PYOXIGRAPH = {
    Format.TURTLE: pyoxigraph.RdfFormat.TURTLE,
    Format.TRIG: pyoxigraph.RdfFormat.TRIG,
    Format.RDF_XML: pyoxigraph.RdfFormat.RDF_XML,
    Format.JSON_LD: pyoxigraph.RdfFormat.JSON_LD,
}


@dataclass(frozen=True, slots=True)
class Quads:
    """Columns of term ids, one row per statement. Graph id 0 is the default graph."""

    subjects: Ids
    predicates: Ids
    objects: Ids
    graphs: Ids

    def __len__(self) -> int:
        return len(self.subjects)

    @classmethod
    def of(cls, parsed: ParsedQuads) -> Quads:
        """Wrap the columns of the native reader's result."""
        return cls(parsed.subjects, parsed.predicates, parsed.objects, parsed.graphs)

    @classmethod
    def joined(cls, parts: list[Quads]) -> Quads:
        """Concatenate parts."""
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
    """Parse a message or small document, and return all statements. After an error, no statement is returned.

    Blank node labels are scoped to the document. `keep`: intern new terms permanently, for stored data. DataError with
    line and column for a syntax error. DataError also if the document exceeds a limit.
    """
    fmt = format if isinstance(format, Format) else Format.named(format)
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    if fmt.is_native:
        return Quads.of(parse_nquads(dictionary, raw, quads=fmt is Format.N_QUADS, keep=keep))
    try:
        return Quads.joined(list(parse_other(dictionary, io.BytesIO(raw), fmt, base, keep=keep, limits=limits)))
    except KilledError:
        return Quads.joined(list(parse_other(dictionary, io.BytesIO(raw), fmt, base, keep=keep, limits=limits)))


@dataclass(frozen=True, slots=True)
class Converted:
    """A document in one of pyoxigraph's formats, converted to N-Quads. The conversion takes most of the parsing time
    and needs no dictionary.
    """

    parts: list[bytes]
    check: DocumentCheck

    @classmethod
    def of(
        cls,
        data: bytes,
        fmt: Format,
        max_bytes: int,
        limits: ParseLimits = PARSE_LIMITS,
    ) -> Converted | None:
        """Convert a message. None if the N-Quads of the message exceed `max_bytes`. DataError as for `parse`."""
        try:
            return cls._of(data, fmt, max_bytes, limits)
        except KilledError:
            return cls._of(data, fmt, max_bytes, limits)

    @classmethod
    def _of(cls, data: bytes, fmt: Format, max_bytes: int, limits: ParseLimits) -> Converted | None:
        check, parts = DocumentCheck(fmt, limits, declarations=False), []
        with closing(_nquads(io.BytesIO(data), fmt, None, limits, check, wait=True)) as texts:
            for text in texts:
                parts.append(text)
                max_bytes -= len(text)
                if max_bytes < 0:
                    return None
        return cls(parts, check)

    @property
    def size(self) -> int:
        """Size of the N-Quads in bytes."""
        return sum(map(len, self.parts))

    def quads(self, dictionary: Dictionary) -> Quads:
        """Return the statements of the document, in the order of `parse`. DataError as for `parse`."""
        scope = BlankScope()
        quads = Quads.joined([Quads.of(parse_nquads(dictionary, text, scope=scope)) for text in self.parts])
        self.check.check_triples(len(quads))
        return quads


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
    """Parse a document in one of pyoxigraph's formats from an open file, in parts of bounded size.

    `trusted`: whether the input is a local file that its owner has chosen. A trusted file is allowed to contain a
    document type declaration, as many OWL files do. It is parsed without a wait for other documents. The limits are the
    same.
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
) -> Generator[bytes, None, None]:
    """Yield a document's statements as N-Quads, in parts. Small documents are parsed in this process, except RDF/XML
    with declarations.
    """
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
    """Return a small document's statements as N-Quads, or None if the document has no statements.

    Any exception of the library becomes a DataError, including Rust panics, which do not derive from `Exception`.
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
