"""The execution of updates: the quads that an update adds (docs/adr/0070-updates.md)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.result_formats import ntriples_term
from penstock.engine.intake.graph_loading import quads_of
from penstock.errors import DataError
from penstock.query.algebra.tree import Bgp, BlankNode, Graph, Iri, Literal, Project, Triple, Variable
from penstock.query.catalogue import STORED_GRAPH
from penstock.query.ir import ChangeData, ChangeGraph, ContinuousQuery, Form, Modify, TransferGraph
from penstock.query.supported_updates import error_in
from penstock.rdf.id_layout import TAG_BLANK, TAG_IRI, TAG_SHIFT
from penstock.rdf.parsing import parse
from penstock.rdf.terms import BLANK

if TYPE_CHECKING:
    from typing import TypeAlias

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.oneshot.one_shot import OneShot
    from penstock.query.algebra.tree import Term
    from penstock.query.ir import Operation, Quad, Update

    Columns: TypeAlias = tuple[Ids, Ids, Ids, Ids]

_S, _P, _O = (Variable(name) for name in "spo")


@dataclass(slots=True)
class UpdateRun:
    """The execution of one update on one snapshot. Hold the engine's lock from `evaluate` until `commit`."""

    core: EngineCore
    one_shot: OneShot
    update: Update
    added: Columns | None = None
    logged: bool = False  # whether the write-ahead log, if there is one, contains the added quads
    _pending: list[Columns] = field(default_factory=list)  # added by operations, not in the overlay yet
    _view: native.Source | None = None
    _lease: native.Lease | None = None

    def evaluate(self) -> Columns:
        """Return the quads that the update adds, perhaps some that the stored graph already has: columns s, p, o and g
        of ids. QueryError, with its position, if an operation fails; LimitError if a pattern exceeds a limit.

        Each operation sees what those before it have added. The stored graph does not change.
        """
        self._lease = self.core.dictionary.lease()
        self._view = self.core.store.view()
        everything = []
        for operation in self.update.operations:
            columns = self._operation(operation)
            if columns is not None and len(columns[0]):
                self._pending.append(columns)
                everything.append(columns)
        empty = np.zeros(0, np.uint64)
        s, p, o, g = ([columns[i] for columns in everything] for i in range(4))
        self.added = tuple(np.concatenate([empty, *column]) for column in (s, p, o, g))  # type: ignore[assignment]
        assert self.added is not None
        return self.added

    def as_nquads(self, most: int) -> bytes | None:
        """Return the added quads as N-Quads. None if they contain a blank node, which has no name outside of this
        process, or an IRI that N-Quads do not allow, or if they have more than `most` bytes.
        """
        assert self.added is not None
        if any((column >> TAG_SHIFT == TAG_BLANK).any() for column in self.added):
            return None
        decoder = native.LocalTerms(self.core.dictionary)
        texts = [["" if t is None else ntriples_term(t) for t in decoder.decode(column)] for column in self.added]
        data = "".join(f"{s} {p} {o} {g} .\n" for s, p, o, g in zip(*texts, strict=True)).encode()
        if len(data) > most:
            return None
        try:
            parse(native.Dictionary(), data, "nquads", None)
        except DataError:
            return None
        return data

    def commit(self) -> None:
        """Commit the added quads as one snapshot."""
        assert self.added is not None
        if len(self.added[0]):
            for column in self.added:
                self.core.dictionary.keep(column)
            self.core.store.commit(*self.added)

    # ---- operations
    def _operation(self, operation: Operation) -> Columns | None:
        match operation:
            case ChangeData():
                return quads_of(self.core.dictionary, operation.quads) if operation.quads else None
            case Modify():
                return self._modify(operation)
            case TransferGraph():
                return self._transfer(operation)
            case ChangeGraph() if isinstance(operation.target, Iri):  # CREATE: a graph exists while it has a triple
                if not operation.silent and self._has_triples(operation.target):
                    raise error_in(self.update, operation, f"graph <{operation.target.value}> already exists")
        return None

    def _modify(self, operation: Modify) -> Columns | None:
        found, rows = self._solutions(operation.query)
        blanks: dict[str, Ids] = {}
        parts = [self._instances(quad, found, rows, blanks) for quad in operation.insert]
        return _joined(parts) if parts and rows else None

    def _transfer(self, operation: TransferGraph) -> Columns | None:
        """Add the triples of a graph to another. COPY to a graph with triples would remove them."""
        source, target = operation.source, operation.target
        if source == target:
            return None
        if source is not None and not operation.silent and not self._has_triples(source):
            raise error_in(self.update, operation, f"graph <{source.value}> does not exist")
        if operation.verb == "COPY" and self._has_triples(target):
            message = "COPY to a graph that has triples is not supported yet: the stored graph only grows"
            raise error_in(self.update, operation, message)
        pattern = Bgp((Triple(_S, _P, _O),))
        algebra = Project(pattern if source is None else Graph(source, pattern), (_S, _P, _O))
        query = ContinuousQuery(self.update.text, Form.SELECT, algebra, (_S, _P, _O), at=operation.at)
        found, rows = self._solutions(query)
        graph = np.full(rows, 0 if target is None else self.core.term_id(target), np.uint64)
        return found["s"], found["p"], found["o"], graph

    def _instances(self, quad: Quad, found: dict[str, Ids], rows: int, blanks: dict[str, Ids]) -> Columns:
        """Return a quad of a template for each solution, without those that are no RDF triples (§3.1.3). `blanks`: the
        blank nodes of the template by label, one for each solution.
        """
        graph, triple = quad
        s, p, o = (self._terms(t, found, rows, blanks) for t in (triple.subject, triple.predicate, triple.object))
        g = np.zeros(rows, np.uint64) if graph is None else self._terms(graph, found, rows, blanks)
        valid = np.isin(s >> TAG_SHIFT, (TAG_IRI, TAG_BLANK)) & (s != 0) & _is_iri(p) & (o != 0)
        if graph is not None:
            valid &= _is_iri(g)
        stored = self.core.graph_id(STORED_GRAPH) if isinstance(graph, Variable) else 0
        if stored:
            g = np.where(g == stored, np.uint64(0), g)
        return s[valid], p[valid], o[valid], g[valid]

    def _terms(self, term: Term, found: dict[str, Ids], rows: int, blanks: dict[str, Ids]) -> Ids:
        """Return the term for each solution."""
        match term:
            case Variable():
                return found[term.name]
            case BlankNode():
                if term.label not in blanks:
                    fresh = [(BLANK, str(row), "", "") for row in range(rows)]
                    blanks[term.label] = self.core.dictionary.intern_many(fresh)
                return blanks[term.label]
            case Iri() | Literal():
                return np.full(rows, self.core.term_id(term), np.uint64)

    # ---- reading
    def _source(self) -> native.Source:
        """Return the stored graph with what the operations have added so far."""
        assert self._view is not None
        if self._pending:
            if not isinstance(self._view, native.Overlay):
                self._view = native.Overlay(self.core.store.labels, self._view)
            for columns in self._pending:
                self._view.add(*columns)
            self._pending.clear()
        return self._view

    def _solutions(self, query: ContinuousQuery) -> tuple[dict[str, Ids], int]:
        """Return the columns of a query by variable, and the number of its solutions."""
        columns, rows = self.one_shot.solutions(query, self._source())
        return dict(zip((variable.name for variable in query.variables), columns, strict=True)), rows

    def _has_triples(self, graph: Iri | None) -> bool:
        """Return whether a graph has triples. A named graph exists while it does."""
        name = 0 if graph is None else self.core.graph_id(graph.value)
        if graph is not None and not name:
            return False
        source = self._source()
        graphs, _ = self.core.store.labels.label_pairs()
        labels = (np.flatnonzero(graphs == name) + 1).tolist()
        return any(native.source_stats(source, label)[0] for label in labels)


def _is_iri(ids: Ids) -> Ids:
    is_iri: Ids = (ids >> TAG_SHIFT == TAG_IRI) & (ids != 0)
    return is_iri


def _joined(parts: list[Columns]) -> Columns:
    s, p, o, g = (np.concatenate(column) for column in zip(*parts, strict=True))
    return s, p, o, g
