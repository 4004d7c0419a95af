"""Loads of documents into the stored graph, and the ids of the quads in updates. Each load is one snapshot."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataError, LimitError
from penstock.mapping.files.data_files import read_mapped
from penstock.mapping.files.file_mapping import DataFormat, FileMapping
from penstock.mapping.files.source_files import mapped_files
from penstock.mapping.rml import compile_rml
from penstock.query.algebra.tree import BlankNode, Iri, Literal, Term
from penstock.rdf.bulk_files import Source, read
from penstock.rdf.parsing import Quads
from penstock.rdf.terms import BLANK, IRI, LITERAL, check_iri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from os import PathLike

    from penstock.core import _native as native
    from penstock.core._native import Ids, Lease, TermTuple
    from penstock.engine.engine_core import EngineCore
    from penstock.query.ir import DataQuad


@dataclass(frozen=True, slots=True)
class LoadReport:
    """The result of a load: number of statements, number of terms, duration in s. The embedded engine counts only new
    statements and new terms. A cluster counts all statements and terms of the document.
    """

    triples: int
    terms: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Document:
    """A document that is parsed and not stored yet. `lease` retains the terms of the document."""

    quads: Quads
    graphs: Ids
    lease: Lease
    terms_before: int
    began: float

    @property
    def columns(self) -> tuple[Ids, Ids, Ids, Ids]:
        """The columns s, p, o and g."""
        return self.quads.subjects, self.quads.predicates, self.quads.objects, self.graphs

    @classmethod
    def read(
        cls,
        core: EngineCore,
        source: str | PathLike[str] | bytes,
        graph: str | None,
        syntax: str | None,
        base: str | None,
        progress: Callable[[int, int], None] | None = None,
        most: int | None = None,
        mapping: dict[str, Any] | None = None,
    ) -> Document:
        """Parse a whole document. DataError if the document is invalid or cannot be read. For an invalid document, the
        error contains the line, if the line is known.

        `source` is a path, or bytes. Bytes require `syntax`. `graph` is the IRI of the graph for statements that name
        no graph. `progress`: see `penstock.rdf.bulk_files.read`. `most` is the maximum number of statements. LimitError
        if the document has more statements. `mapping`: settings of the mapping of a data file (`Engine.load`).
        """
        began, terms, lease = time.perf_counter(), core.dictionary.size(), core.dictionary.lease()
        name = np.uint64(0 if graph is None else core.dictionary.intern(IRI, check_iri(graph)))
        try:
            parts = _parts(core.dictionary, source, syntax, base, progress, mapping)
            quads = Quads.joined(list(parts if most is None else _at_most(most, parts)))
        except OSError as error:
            raise DataError(f"{source!r} cannot be read: {error}") from error
        return cls(quads, np.where(quads.graphs == 0, name, quads.graphs), lease, terms, began)

    def commit(self, core: EngineCore) -> LoadReport:
        """Store the document as one snapshot. The caller must hold the engine's lock."""
        triples = core.store.edge_count()
        for column in self.columns:
            core.dictionary.keep(column)
        core.store.commit(*self.columns)
        terms = core.dictionary.size() - self.terms_before
        return LoadReport(core.store.edge_count() - triples, terms, time.perf_counter() - self.began)


def _parts(
    dictionary: native.Dictionary,
    source: str | PathLike[str] | bytes,
    syntax: str | None,
    base: str | None,
    progress: Callable[[int, int], None] | None,
    mapping: dict[str, Any] | None,
) -> Iterator[Quads]:
    """Yield the statements of an RDF document, or the statements that a mapping creates from data files."""
    if mapping is None:
        return read(dictionary, Source.of(source, syntax, base), keep=False, progress=progress)
    given = {"base": base, "format": syntax}
    settings = mapping | {name: value for name, value in given.items() if value is not None}
    if isinstance(source, bytes):
        return read_mapped(dictionary, source, FileMapping(settings, DataFormat.of("<bytes>", settings)), progress)
    path = Path(source)
    if not path.is_dir():
        return read_mapped(dictionary, path, FileMapping(settings, DataFormat.of(path.name, settings)), progress)
    if not isinstance(settings.get("rml"), str):
        raise DataError(f"{path}: only an RML mapping names the files in a folder")
    quads = mapped_files(compile_rml(settings["rml"], settings.get("base")), path)
    return read(dictionary, Source.of(quads, "nquads"), keep=False, progress=progress)


def _at_most(most: int, parts: Iterator[Quads]) -> Iterator[Quads]:
    """Yield the parts of a document. LimitError as soon as the total number of statements exceeds `most`."""
    count = 0
    for part in parts:
        count += len(part)
        if count > most:
            raise LimitError(f"a document with more than {most} statements")
        yield part


def quads_of(dictionary: native.Dictionary, quads: Sequence[DataQuad]) -> tuple[Ids, Ids, Ids, Ids]:
    """Return the columns s, p, o and g of an update's quads, as ids of `dictionary`. For the default graph, g is 0."""
    ids = dictionary.intern_many(_flat(quads))
    s, p, o = (np.ascontiguousarray(ids[i : 3 * len(quads) : 3]) for i in range(3))
    g = np.zeros(len(s), np.uint64)
    g[[graph is not None for graph, _ in quads]] = ids[3 * len(quads) :]
    return s, p, o, g


def _flat(quads: Sequence[DataQuad]) -> list[TermTuple]:
    """Return the terms of all triples, followed by the graphs, in one list. The caller interns this list in one call,
    so that each blank node gets only one id.
    """
    triples = [_tuple(term) for _, t in quads for term in (t.subject, t.predicate, t.object)]
    return [*triples, *(_tuple(graph) for graph, _ in quads if graph is not None)]


def _tuple(term: Term) -> TermTuple:
    match term:
        case Iri():
            return IRI, term.value, "", ""
        case BlankNode():
            return BLANK, term.label, "", ""
        case Literal():
            return LITERAL, term.lexical, term.datatype, term.lang
        case _:
            raise AssertionError(f"a variable in ground data: {term}")
