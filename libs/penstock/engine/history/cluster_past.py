"""Which queries of a cluster begin in the past (ADR 107). The coordinator decides this at the registration.

In a cluster, the stored graph is readable as of an earlier instant only if the declarations of the query's streams set
`graph_history`. A query of a cluster therefore begins in the past only under two conditions. All streams of the query
have a retention. If the query reads the stored graph, all streams of the query have `graph_history`.

Count windows, and `[ALL]` without a range, need all tuples since the first progress. The coordinator does not know
which tuples are released when the registration takes effect. The replicas decide whether to refuse such a query
(`Registration.refused`). Such windows need FROM BEGINNING, and a query that publishes a stream cannot have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from penstock.query.algebra.tree import Bgp, Graph, Iri, WindowGraph
from penstock.query.algebra.walk import children, exists_patterns, expressions
from penstock.query.datasets import query_dataset
from penstock.query.ir import Form, TimeRange
from penstock.query.planning.flatten import graph_scope
from penstock.query.planning.relations import Scope
from penstock.query.resolve import resolve
from penstock.query.text_faults import Fault, query_error

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Node
    from penstock.query.catalogue import Catalogue
    from penstock.query.datasets import QueryDataset
    from penstock.query.ir import ContinuousQuery

Reached: TypeAlias = Callable[[str], int | None]
"""A function of a stream's IRI. Returns the end in ms of the last batch that is known to be closed, or None."""

_IN_A_CLUSTER = "in a cluster, a query that begins in the past cannot "


def begins_in_past(query: ContinuousQuery, catalogue: Catalogue, reached: Reached) -> bool:
    """Return whether a query can begin in the past of a cluster. If the result is True and the query has STARTING AT,
    the step of the registration decides whether the instant is in the past.

    QueryError if the text asks for the past, but the query cannot begin there. A text with STARTING AT asks for the
    past only if the instant is in the past according to `reached`, and if a stream has a retention. Otherwise, STARTING
    AT only sets the grid.
    """
    start = query.starting_at_ms
    if query.parameters or (not query.from_beginning and start is None):
        return False  # another check refuses a query set with FROM BEGINNING
    resolved = resolve(query, catalogue)
    streams = [clause.stream for clause in resolved.windows]
    if start is not None and not any(map(catalogue.retention_ms, streams)):
        return False
    fault = _obstacle(resolved, catalogue)
    if fault is None:
        return True
    if start is None or any(end is not None and start <= end for end in map(reached, streams)):
        raise query_error(fault, query.text)
    return False


def _obstacle(query: ContinuousQuery, catalogue: Catalogue) -> Fault | None:
    """Return the reason why a resolved query cannot begin in the past of a cluster, or None."""
    for clause in query.windows:
        if not catalogue.retention_ms(clause.stream):
            message = f"read <{clause.stream}>, which has no retention: declare the stream with retention_ms"
            return Fault(_IN_A_CLUSTER + message, clause.at)
        window = clause.range
        if not isinstance(window, TimeRange) or (window.range_ms is None and not catalogue.timing(clause.stream)):
            if query.publishes:
                return Fault(_IN_A_CLUSTER + "publish a stream from a window without a range in time", clause.at)
            if not query.from_beginning:
                message = "have a window without a range in time: use FROM BEGINNING"
                return Fault(_IN_A_CLUSTER + message, clause.at)
    if query.entailed:
        return Fault(_IN_A_CLUSTER + "read the stored schema, as ENTAILMENT does", query.entailment_at)
    at = stored_read(query, catalogue)
    without = [clause.stream for clause in query.windows if not catalogue.graph_history(clause.stream)]
    if at is None or not without:
        return None
    message = f"read the stored graph, as this pattern does: declare <{without[0]}> with graph_history"
    return Fault(_IN_A_CLUSTER + message, at)


def stored_read(query: ContinuousQuery, catalogue: Catalogue) -> int | None:
    """Return an offset in the text of a resolved query: the position of the first pattern that reads the stored graph.
    Return None if no pattern reads the stored graph.
    """
    dataset = query_dataset(query, catalogue)
    scope = Scope(dataset.default)
    if query.form is Form.DESCRIBE and _is_stored(scope):
        return query.at
    return _stored_read(query.algebra, scope, dataset)


def _stored_read(node: Node, scope: Scope, dataset: QueryDataset) -> int | None:
    if isinstance(node, Bgp):
        return node.patterns[0].at if node.patterns and _is_stored(scope) else None
    if isinstance(node, Graph | WindowGraph):
        scope = graph_scope(node, dataset)
        # if no dataset clause contains <g>, GRAPH <g> also tests whether <g> exists
        if isinstance(node, Graph) and _is_stored(scope):
            return node.name.at if isinstance(node.name, Iri) else node.at
    parts = [*children(node), *(pattern for expr in expressions(node) for pattern in exists_patterns(expr))]
    return next((at for part in parts if (at := _stored_read(part, scope, dataset)) is not None), None)


def _is_stored(scope: Scope) -> bool:
    return any(part.source == 0 for part in scope.parts)
