"""Checks a parsed query against an engine. The streams and graphs in the query must exist (language.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import QueryError
from penstock.query.algebra.tree import Graph, Iri
from penstock.query.algebra.walk import nodes
from penstock.query.catalogue import STORED_GRAPH
from penstock.query.ir import ContinuousQuery, TimeRange, Update, WindowClause
from penstock.query.text_faults import Fault, query_error

if TYPE_CHECKING:
    from penstock.query.catalogue import Catalogue
    from penstock.query.ir import Statement


def error_at(query: ContinuousQuery, at: int, message: str, construct: str = "") -> QueryError:
    """Return a QueryError at offset `at` of the query's text. If `construct` is empty, the error refers to the word at
    that offset.
    """
    return query_error(Fault(message, at, construct), query.text)


def as_query(statement: Statement) -> ContinuousQuery:
    """Return the statement if it is a query. QueryError for an update."""
    if isinstance(statement, ContinuousQuery):
        return statement
    if not statement.operations:
        raise QueryError("expected a query, found the end of the text", 1, 1, text=statement.text)
    message = "an update is not a query: use Engine.update, Client.update or POST /update"
    raise query_error(Fault(message, statement.operations[0].at), statement.text)


def as_update(statement: Statement) -> Update:
    """Return the statement if it is an update. QueryError for a query."""
    if isinstance(statement, Update):
        return statement
    ways = "use Engine.query or Engine.register, Client.query or Client.register, /sparql or PUT /queries/NAME"
    raise QueryError(f"a query is not an update: {ways}", 1, 1, text=statement.text)


def resolve(query: ContinuousQuery, catalogue: Catalogue, *, stands: bool = False) -> ContinuousQuery:
    """Return the query with the ranges of `[NOW]` windows set. QueryError if the query names an unknown stream or
    graph. QueryError also if the query uses `[ALL]` over a stream that has timing predicates but no retention.

    One-shot queries are allowed to name unknown graphs. As in SPARQL, such graphs are empty. A query that was
    registered before (`stands`) is also allowed to name an unknown graph: perhaps the stream whose
    tuples were absorbed into this graph has been dropped.
    """
    if not query.continuous:
        return query
    windows = tuple(_window(query, clause, catalogue) for clause in query.windows)
    for iri in () if stands else stored_graphs(query):
        _check_graph(query, iri, catalogue)
    return replace(query, windows=windows)


def stored_graphs(query: ContinuousQuery) -> list[Iri]:
    """Return the IRIs of the stored graphs that a query names, with the positions of the IRIs in the text. The graphs
    in dataset clauses come first, then the graphs in patterns.
    """
    listed = [*query.dataset.default, *query.dataset.named]
    known = {clause.name for clause in query.windows if not clause.named_window} | {iri.value for iri in listed}
    named = [node.name for node in nodes(query.algebra) if isinstance(node, Graph) and isinstance(node.name, Iri)]
    return [*listed, *(iri for iri in named if iri.value not in known)]


def _check_graph(query: ContinuousQuery, iri: Iri, catalogue: Catalogue) -> None:
    if iri.value == STORED_GRAPH or catalogue.has_graph(iri.value):
        return
    if catalogue.is_stream(iri.value):
        message = f"<{iri.value}> is a stream: name it in a FROM STREAM clause with a window"
    else:
        message = f"unknown graph <{iri.value}>: nothing was loaded into it and no stream absorbs into it"
    raise error_at(query, iri.at, message)


def _window(query: ContinuousQuery, clause: WindowClause, catalogue: Catalogue) -> WindowClause:
    if not catalogue.is_stream(clause.stream):
        message = f"unknown stream <{clause.stream}>: declare it first"
        if catalogue.has_graph(clause.stream):
            message = f"<{clause.stream}> is a stored graph, which has no window: leave the bracket out"
        raise error_at(query, clause.at, message)
    window = clause.range
    if not isinstance(window, TimeRange):
        return clause
    if window.now:
        batch_ms = catalogue.batch_ms(clause.stream)
        return replace(clause, range=TimeRange(batch_ms, query.computed_every_ms or batch_ms))
    if window.range_ms is None and catalogue.timing(clause.stream) and catalogue.retention_ms(clause.stream) <= 0:
        message = f"[ALL] over <{clause.stream}> needs a retention: the stream has timing predicates"
        raise error_at(query, clause.at, message)
    return clause
