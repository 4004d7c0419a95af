"""The execution of updates. An execution finds the quads that an update removes, and the quads that the update adds
(docs/adr/0070-updates.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.graph_change import NO_QUADS, GraphChange, joined
from penstock.engine.intake.graph_loading import quads_of
from penstock.engine.oneshot.failed_frames import clear_locals
from penstock.engine.oneshot.local_documents import document_change
from penstock.errors import DataError
from penstock.query.algebra.tree import Bgp, Graph, Iri, Project, Triple, Variable
from penstock.query.catalogue import STORED_GRAPH
from penstock.query.ir import ChangeData, ChangeGraph, ContinuousQuery, Form, LoadDocument, Modify, TransferGraph
from penstock.query.planning.quad_templates import templates_of
from penstock.query.prepared import BoundModify
from penstock.query.supported_updates import error_in
from penstock.rdf.id_layout import TAG_BLANK, TAG_SHIFT
from penstock.rdf.parsing import parse
from penstock.rdf.terms import BLANK

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.oneshot.one_shot import OneShot
    from penstock.engine.stored_graph import Columns
    from penstock.query.algebra.tree import Node
    from penstock.query.ir import Operation, Update
    from penstock.query.planning.quad_templates import QuadTemplates
    from penstock.query.prepared import BoundQuery, BoundUpdate
    from penstock.query.templates import Constant

_S, _P, _O, _G = (Variable(name) for name in "spog")
_TRIPLES = Bgp((Triple(_S, _P, _O),))


def data_change(dictionary: native.Dictionary, update: Update | BoundUpdate) -> GraphChange:
    """Return the change that an update makes, as ids of `dictionary`. The update must consist of INSERT DATA and DELETE
    DATA.
    """
    return GraphChange.joined([_of_data(dictionary, operation) for operation in update.operations])


@dataclass(slots=True)
class UpdateRun:
    """The execution of one update on one snapshot. The caller must hold the engine's lock from `evaluate` until the
    change is committed.
    """

    core: EngineCore
    one_shot: OneShot
    update: Update | BoundUpdate
    change: GraphChange | None = None
    logged: bool = False  # whether the write-ahead log, if there is one, contains the change
    load_directory: Path | None = None  # LOAD reads only files below this directory
    _pending: list[GraphChange] = field(default_factory=list)  # changes that the overlay does not contain yet
    _view: native.Source | None = None
    _lease: native.Lease | None = None

    def evaluate(self) -> GraphChange:
        """Return the change that the update makes. The change can remove quads that the stored graph does not contain,
        and add quads that the stored graph already contains. QueryError, with the position in the text, if an operation
        fails. LimitError if a pattern exceeds a limit.

        Each operation sees the changes of the earlier operations. The stored graph does not change.
        """
        self._lease = self.core.dictionary.lease()
        self._view = self.core.store.view()
        try:
            self.change = GraphChange.joined(self._changes())
        except BaseException as error:
            self._view = self._lease = None  # an error can live long, and must not retain these objects
            clear_locals(error)
            raise
        return self.change

    def _changes(self) -> list[GraphChange]:
        """Evaluate the operations one after another. Returns a list with the change of each operation."""
        changes = []
        for operation in self.update.operations:
            change = self._operation(operation)
            if change:
                self._pending.append(change)
                changes.append(change)
        return changes

    def as_nquads(self, most: int) -> tuple[bytes, bytes] | None:
        """Return the removed and the added quads as N-Quads. The result is None in three cases: a quad contains a blank
        node (blank nodes have no names outside of this process), a quad contains an IRI that N-Quads do not allow, or
        the two texts together have more than `most` bytes.
        """
        assert self.change is not None
        removed, added = (self._nquads(quads) for quads in (self.change.removed, self.change.added))
        if removed is None or added is None or len(removed) + len(added) > most:
            return None
        return removed, added

    def _nquads(self, quads: Columns) -> bytes | None:
        if any((column >> TAG_SHIFT == TAG_BLANK).any() for column in quads):
            return None
        terms = native.LocalTerms(self.core.dictionary)
        data = native.answer_text("ntriples", ("s", "p", "o", "g"), quads, (), len(quads[0]), terms).encode()
        try:
            parse(native.Dictionary(), data, "nquads", None)
        except DataError:
            return None
        return data

    # ---- operations
    def _operation(self, operation: Operation | BoundModify) -> GraphChange:
        match operation:
            case BoundModify():
                return self._modify(*operation)
            case ChangeData():
                return _of_data(self.core.dictionary, operation)
            case Modify():
                return self._modify(*templates_of(operation), operation.query)
            case TransferGraph():
                return self._transfer(operation)
            case ChangeGraph(verb="CREATE", target=Iri() as graph):  # a graph exists while it has a triple
                if not operation.silent and self._has_triples(graph):
                    raise error_in(self.update, operation, f"graph <{graph.value}> already exists")
            case ChangeGraph():
                return GraphChange(removed=self._triples_of(operation.target, operation.at))
            case LoadDocument():
                return self._load(operation)
        return GraphChange()

    def _load(self, operation: LoadDocument) -> GraphChange:
        try:
            if self.load_directory is not None:
                return self._document(operation, self.load_directory)
        except DataError as error:
            if not operation.silent:
                raise error_in(self.update, operation, str(error)) from error
        return GraphChange()

    def _document(self, operation: LoadDocument, directory: Path) -> GraphChange:
        return document_change(self.core, operation, directory)

    def _modify(
        self, templates: QuadTemplates, constants: tuple[Constant, ...], query: ContinuousQuery | BoundQuery
    ) -> GraphChange:
        columns, rows = self.one_shot.solutions(query, self._source())
        if not rows:
            return GraphChange()
        if templates.blanks:
            columns += self._blanks(templates.blanks, rows)
        ids = [self.core.term_id(constant) for constant in constants]
        stored = self.core.graph_id(STORED_GRAPH) if templates.graphs else 0
        return GraphChange(*native.instances(templates.delete, templates.insert, ids, columns, rows, stored))

    def _blanks(self, labels: int, rows: int) -> tuple[Ids, ...]:
        """Return a column of new blank nodes for each label of a template."""
        names = [(BLANK, str(number), "", "") for number in range(labels * rows)]
        return tuple(np.split(self.core.dictionary.intern_many(names), labels))

    def _transfer(self, operation: TransferGraph) -> GraphChange:
        """Execute ADD, COPY or MOVE: add the triples of a source graph to a target graph. COPY and MOVE first remove
        all triples from the target graph. MOVE also removes the source graph at the end.
        """
        source, target = operation.source, operation.target
        if source == target:
            return GraphChange()
        if source is not None and not self._has_triples(source):
            if operation.silent:
                return GraphChange()
            raise error_in(self.update, operation, f"graph <{source.value}> does not exist")
        s, p, o, g = self._triples_of(source or "DEFAULT", operation.at)
        replaced = NO_QUADS if operation.verb == "ADD" else self._triples_of(target or "DEFAULT", operation.at)
        moved = (s, p, o, g) if operation.verb == "MOVE" else NO_QUADS
        name = np.uint64(0 if target is None else self.core.term_id(target))
        return GraphChange(joined([replaced, moved]), (s, p, o, np.full(len(g), name)))

    def _triples_of(self, graph: Iri | str, at: int) -> Columns:
        """Return the triples of a graph, or of all graphs that the keyword DEFAULT, NAMED or ALL denotes."""
        if graph == "ALL":
            return joined([self._triples_of("DEFAULT", at), self._triples_of("NAMED", at)])
        variables: tuple[Variable, ...] = (_S, _P, _O)
        pattern: Node = _TRIPLES
        if isinstance(graph, Iri):
            pattern = Graph(graph, pattern)
        elif graph == "NAMED":
            pattern, variables = Graph(_G, pattern), (*variables, _G)
        query = ContinuousQuery(self.update.text, Form.SELECT, Project(pattern, variables), variables, at=at)
        found, rows = self._solutions(query)
        if not rows:
            return NO_QUADS
        name = self.core.graph_id(graph.value) if isinstance(graph, Iri) else 0
        return found["s"], found["p"], found["o"], found.get("g", np.full(rows, name, np.uint64))

    # ---- reading
    def _source(self) -> native.Source:
        """Return a view of the stored graph that includes the changes of all operations so far."""
        assert self._view is not None
        if self._pending:
            if not isinstance(self._view, native.Overlay):
                self._view = native.Overlay(self.core.store.labels, self._view)
            for change in self._pending:
                self._view.remove(*change.removed)
                self._view.add(*change.added)
            self._pending.clear()
        return self._view

    def _solutions(self, query: ContinuousQuery) -> tuple[dict[str, Ids], int]:
        """Return the columns of a query by variable, and the number of solutions."""
        columns, rows = self.one_shot.solutions(query, self._source())
        return dict(zip((variable.name for variable in query.variables), columns, strict=True)), rows

    def _has_triples(self, graph: Iri | None) -> bool:
        """Return whether a graph has triples. A named graph exists while it has triples."""
        name = 0 if graph is None else self.core.graph_id(graph.value)
        if graph is not None and not name:
            return False
        source = self._source()
        graphs, _ = self.core.store.labels.label_pairs()
        labels = (np.flatnonzero(graphs == name) + 1).tolist()
        return any(native.source_stats(source, label)[0] for label in labels)


def _of_data(dictionary: native.Dictionary, operation: Operation | BoundModify) -> GraphChange:
    assert isinstance(operation, ChangeData)
    if not operation.quads:
        return GraphChange()
    quads = quads_of(dictionary, operation.quads)
    return GraphChange(added=quads) if operation.insert else GraphChange(removed=quads)
