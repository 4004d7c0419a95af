"""Translation of updates to the IR (SPARQL 1.1 Update §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Iri, Project, Triple, Variable
from penstock.query.catalogue import STORED_GRAPH
from penstock.query.ir import (
    ChangeData,
    ChangeGraph,
    ContinuousQuery,
    Dataset,
    Form,
    LoadDocument,
    Modify,
    TransferGraph,
    Update,
)
from penstock.query.syntax.ast_nodes import position
from penstock.query.syntax.update_nodes import (
    DataOperation,
    GraphOperation,
    LoadOperation,
    ModifyOperation,
    TransferOperation,
)
from penstock.query.text_faults import Fault
from penstock.query.translation.context import Context, labels_in
from penstock.query.translation.names import Names
from penstock.query.translation.query_checks import check_depth
from penstock.query.translation.solutions import SolutionTranslator
from penstock.query.translation.triples import DataReader, DeleteDataReader, DeleteTemplateReader, InsertTemplateReader
from penstock.query.translation.window_clauses import read_dataset

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.budget import Budget
    from penstock.query.ir import Operation, Quad
    from penstock.query.syntax.update_nodes import OperationSyntax, TemplateClause, UpdateText
    from penstock.query.translation.triples import TripleReader

_SOLUTIONS = SolutionTranslator()


class UpdateTranslation:
    """The translation of one text. `any_function`: whether calls of unknown functions by IRI are accepted."""

    def __init__(self, text: str, base: str | None, budget: Budget, *, any_function: bool = False) -> None:
        self._text = text
        self._names = Names(base, budget)
        self._budget = budget
        self._taken = labels_in(text)
        self._any_function = any_function
        self._data = self._context()  # shared by all INSERT DATA, which cannot have common blank node labels

    def update(self, syntax: UpdateText) -> Update:
        """Translate and check an update. Fault if the update is invalid."""
        operations = []
        for prologue, operation in syntax.operations:
            self._names.declare(prologue)
            operations.append(self._operation(operation))
        return Update(self._text, tuple(operations))

    def _context(self) -> Context:
        return Context(self._names, self._budget, self._taken, any_function=self._any_function)

    def _operation(self, syntax: OperationSyntax) -> Operation:
        match syntax:
            case DataOperation():
                self._budget.time(False)
                operation = self._change_data(syntax)
                self._budget.time(True)
                return operation
            case ModifyOperation():
                return self._modify(syntax)
            case LoadOperation():
                graph = None if syntax.graph is None else self._graph(syntax.graph)
                return LoadDocument(self._names.iri(syntax.source), graph, syntax.silent, syntax.at)
            case GraphOperation():
                return ChangeGraph(syntax.verb, self._target(syntax.target), syntax.silent, syntax.at)
            case TransferOperation():
                source, target = self._end(syntax.source), self._end(syntax.target)
                return TransferGraph(syntax.verb, source, target, syntax.silent, syntax.at)

    # ---- graphs
    def _graph(self, name: Token) -> Iri | None:
        """Return the graph with a name, or None for the IRI of the stored default graph."""
        iri = self._names.iri(name)
        return None if iri.value == STORED_GRAPH else iri

    def _target(self, name: Token) -> Iri | str:
        """Return a graph, or the word DEFAULT, NAMED or ALL."""
        return name.type if name.type in ("DEFAULT", "NAMED", "ALL") else self._graph(name) or "DEFAULT"

    def _end(self, name: Token) -> Iri | None:
        """Return a graph, or None for DEFAULT."""
        return None if name.type == "DEFAULT" else self._graph(name)

    # ---- triples
    def _change_data(self, syntax: DataOperation) -> ChangeData:
        """Translate INSERT DATA or DELETE DATA. A blank node label is allowed in only one INSERT DATA of the text
        (SPARQL 1.1 Query §19.6).
        """
        insert = syntax.verb == "INSERT"
        kind = DataReader if insert else DeleteDataReader
        self._data.bgps += 1
        quads: list[tuple[Iri | None, Triple]] = []
        for name, triples in syntax.plain:
            graph = self._data_graph(name, kind.where)
            quads.extend((graph, triple) for triple in kind(self._data).plain_triples(triples))
        for name, block in syntax.quads:
            graph = self._data_graph(name, kind.where)
            reader = kind(self._data)
            reader.read(block)
            quads.extend((graph, triple) for triple in reader.plain())
        return ChangeData(insert, tuple(quads), syntax.at)

    def _data_graph(self, name: Token | None, where: str) -> Iri | None:
        if name is not None and name.type == "VAR":
            raise Fault(f"a variable cannot stand in {where}", position(name), str(name))
        return None if name is None else self._graph(name)

    def _modify(self, syntax: ModifyOperation) -> Modify:
        """Translate DELETE … INSERT … WHERE. WITH gives the default graph of the templates. Without USING, WITH also
        gives the default graph of the pattern (§3.1.3).
        """
        context = self._context()
        default = None if syntax.graph is None else self._graph(syntax.graph)
        delete = self._template(syntax.delete, default, DeleteTemplateReader(context))
        insert = self._template(syntax.insert, default, InsertTemplateReader(context))
        dataset = read_dataset(syntax.using, context)
        if not syntax.using and default is not None:
            dataset = Dataset((default,), all_named=True)
        pattern = _SOLUTIONS.pattern(context, syntax.where).filtered
        check_depth(pattern, self._budget)
        for window in context.windows.values():
            raise Fault("an update reads the stored graph: it cannot have a window", window.at)
        variables = _variables(delete + insert)
        query = ContinuousQuery(
            self._text, Form.SELECT, Project(pattern, variables, syntax.at), variables, dataset=dataset, at=syntax.at
        )
        own_dataset = bool(syntax.using) or syntax.graph is not None
        return Modify(delete, insert, query, own_dataset, syntax.at)

    def _template(self, syntax: TemplateClause | None, default: Iri | None, reader: TripleReader) -> tuple[Quad, ...]:
        """Translate the quads of a template. All quads share the reader's context, and thus its blank nodes."""
        quads: list[Quad] = []
        for name, block in () if syntax is None else syntax.quads:
            graph: Iri | Variable | None = default
            if name is not None:
                graph = Variable(name[1:], position(name)) if name.type == "VAR" else self._graph(name)
            first = len(reader.triples)
            reader.read(block)
            quads.extend((graph, triple) for triple in reader.triples[first:] if isinstance(triple, Triple))
        return tuple(quads)


def _variables(quads: tuple[Quad, ...]) -> tuple[Variable, ...]:
    """Return the distinct variables of quads, in order."""
    found: dict[str, Variable] = {}
    for graph, triple in quads:
        for term in (graph, triple.subject, triple.predicate, triple.object):
            if isinstance(term, Variable):
                found.setdefault(term.name, term)
    return tuple(found.values())
