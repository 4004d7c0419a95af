"""Translation of WITH ENTAILMENT, and the checks of entailed queries that need no engine (docs/semantics.md §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import (
    Alternative,
    Bgp,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    PathTriple,
    Sequence,
    ZeroOrMore,
    ZeroOrOne,
)
from penstock.query.algebra.vocabulary import TYPE
from penstock.query.algebra.walk import nodes
from penstock.query.ir import Form
from penstock.query.syntax.ast_nodes import position
from penstock.query.text_faults import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence as Many

    from penstock.query.algebra.tree import Path
    from penstock.query.ir import ContinuousQuery
    from penstock.query.syntax.ast_nodes import EntailmentClause
    from penstock.query.translation.context import Context

_REGIME = "http://www.w3.org/ns/entailment/RDFS"


def read_entailment(clauses: Many[EntailmentClause], context: Context) -> int | None:
    """Return the position of WITH ENTAILMENT RDFS, or None if the text has no such clause. Fault for another regime, or
    for a second clause.
    """
    for clause in clauses:
        bare = clause.regime.type == "NAME"
        regime = str(clause.regime).upper() if bare else context.names.iri(clause.regime).value
        if regime not in ("RDFS", _REGIME):
            message = f"unknown entailment regime {clause.regime}: write WITH ENTAILMENT RDFS"
            raise Fault(message, position(clause.regime), str(clause.regime))
    if len(clauses) > 1:
        raise Fault("a query has one WITH ENTAILMENT clause", clauses[1].at)
    return clauses[0].at if clauses else None


def check_entailed(query: ContinuousQuery) -> None:
    """Raise Fault if a query with entailment has a form that entailment does not define: DESCRIBE, a negated property
    set, or rdf:type in a path with `*`, `+` or `?`.
    """
    if not query.entailed:
        return
    if query.form is Form.DESCRIBE:
        raise Fault("DESCRIBE cannot be used with ENTAILMENT: use CONSTRUCT", query.at)
    for node in nodes(query.algebra):
        for pattern in node.patterns if isinstance(node, Bgp) else ():
            if isinstance(pattern, PathTriple):
                _check_path(pattern.path, pattern.at, repeats=False)


def _check_path(path: Path, at: int, *, repeats: bool) -> None:
    match path:
        case NegatedSet():
            raise Fault("a negated property set cannot be used with ENTAILMENT: use a variable and FILTER", at)
        case Link() if repeats and path.iri.value == TYPE:
            raise Fault(
                "rdf:type cannot be repeated by *, + or ? with ENTAILMENT", path.iri.at if path.iri.at >= 0 else at
            )
        case Inverse():
            _check_path(path.path, at, repeats=repeats)
        case Sequence() | Alternative():
            for part in path.parts:
                _check_path(part, at, repeats=repeats)
        case ZeroOrMore() | OneOrMore() | ZeroOrOne():
            _check_path(path.path, at, repeats=True)
        case _:
            pass
