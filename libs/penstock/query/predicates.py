"""The predicates that a query reads, for the predicate filter of adaptors (docs/semantics.md §1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import (
    AggregateCall,
    Alternative,
    Bgp,
    Call,
    Inverse,
    Iri,
    Link,
    OneOrMore,
    PathTriple,
    Sequence,
)
from penstock.query.algebra.walk import expressions, nodes
from penstock.query.ir import CountRange, Form

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.query.algebra.tree import Expr, Path, Triple
    from penstock.query.ir import ContinuousQuery


class _AnyError(Exception):
    """Raised if a query can read tuples of any predicate."""


def predicates_of(query: ContinuousQuery) -> frozenset[str] | None:
    """Return the IRIs of the predicates whose tuples affect the answers of a query.

    None if tuples of any predicate can affect the answers. None is the result for queries with one of the following:
    variables as predicates of patterns or of `timestamp`, negated property sets, paths with `*` or `?` (such paths can
    match every node), DESCRIBE, count windows, and entailment.
    """
    if (
        query.entailed
        or query.form is Form.DESCRIBE
        or any(isinstance(window.range, CountRange) for window in query.windows)
    ):
        return None
    try:
        return frozenset(_of_algebra(query))
    except _AnyError:
        return None


def _of_algebra(query: ContinuousQuery) -> Iterator[str]:
    for node in nodes(query.algebra):
        if isinstance(node, Bgp):
            for pattern in node.patterns:
                yield from _of_pattern(pattern)
        for expr in expressions(node):
            yield from _of_expression(expr)


def _of_pattern(pattern: Triple | PathTriple) -> Iterator[str]:
    if isinstance(pattern, PathTriple):
        yield from _of_path(pattern.path)
    elif isinstance(pattern.predicate, Iri):
        yield pattern.predicate.value
    else:
        raise _AnyError


def _of_path(path: Path) -> Iterator[str]:
    match path:
        case Link():
            yield path.iri.value
        case Inverse() | OneOrMore():
            yield from _of_path(path.path)
        case Sequence() | Alternative():
            for part in path.parts:
                yield from _of_path(part)
        case _:
            raise _AnyError


def _of_expression(expr: Expr) -> Iterator[str]:
    """Yield the predicates of functions that look up tuples. This function does not visit patterns of EXISTS, because
    `nodes` yields these patterns.
    """
    if isinstance(expr, AggregateCall) and expr.expr is not None:
        yield from _of_expression(expr.expr)
    if not isinstance(expr, Call):
        return
    if expr.name == "timestamp":
        predicate = expr.args[1]
        if not isinstance(predicate, Iri):
            raise _AnyError
        yield predicate.value
    for argument in expr.args:
        yield from _of_expression(argument)
