"""Templates. Queries have the same template, and can share a group, if they differ only in constants at vertices and in
literals in comparisons (ADR 6).

Parameters replace the constants in subject and object position of triple patterns, and the literals in comparisons.
Predicates, graphs, windows, paths and LIMIT belong to the template, so that all members of a group can share a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from penstock.query.algebra.tree import (
    Bgp,
    Call,
    Exists,
    Expr,
    Iri,
    Literal,
    Node,
    Parameter,
    PathTriple,
    Term,
    Triple,
    Variable,
)
from penstock.query.algebra.vocabulary import names_class_or_property
from penstock.query.algebra.walk import rebuild

if TYPE_CHECKING:
    from penstock.query.ir import ContinuousQuery

Constant: TypeAlias = Iri | Literal

_COMPARISONS = frozenset(("=", "!=", "<", ">", "<=", ">="))
_PARAMETER = "$"  # not a valid first character of a SPARQL variable


@dataclass(frozen=True, slots=True)
class Template:
    """A query with parameters in place of constants. A template has no text. A template has a name only if the query
    publishes a stream. A template is the key of a group.
    """

    query: ContinuousQuery
    parameters: tuple[Variable, ...]


def parametrise(query: ContinuousQuery, *, declared_only: bool = False) -> tuple[Template, tuple[Constant, ...]]:
    """Return a query's template, and its constants in the order of the template's parameters. With `declared_only`,
    replace only the declared parameters of a query set, in any position.
    """
    constants: list[Constant] = []
    replaced = Parameter if declared_only else (Iri, Literal)

    def parameter(constant: Constant) -> Variable:
        constants.append(constant)
        return Variable(f"{_PARAMETER}{len(constants) - 1}", constant.at)

    def vertex(term: Term) -> Term:
        return parameter(term) if isinstance(term, replaced) else term

    def pattern(triple: Triple | PathTriple) -> Triple | PathTriple:
        # the rewriting of an entailed pattern depends on its class or property
        named = query.entailed and names_class_or_property(triple) and not isinstance(triple.object, Parameter)
        object_ = triple.object if named else vertex(triple.object)
        return replace(triple, subject=vertex(triple.subject), object=object_)

    def expression(expr: Expr) -> Expr:
        if isinstance(expr, Exists):
            return replace(expr, pattern=node(expr.pattern))
        if isinstance(expr, Parameter):
            return parameter(expr)
        if not isinstance(expr, Call):
            return expr
        if expr.name in _COMPARISONS and not declared_only:
            return replace(
                expr, args=tuple(parameter(a) if isinstance(a, Literal) else expression(a) for a in expr.args)
            )
        return replace(expr, args=tuple(map(expression, expr.args)))

    def node(current: Node) -> Node:
        if isinstance(current, Bgp):
            return replace(current, patterns=tuple(map(pattern, current.patterns)))
        return rebuild(current, node, expression)

    algebra = node(query.algebra)
    # The template of a query that publishes a stream contains its name, so that its group has no other member.
    name = query.name if query.publishes else None
    bare = replace(query, algebra=algebra, text="", name=name, warnings=())
    return Template(bare, tuple(Variable(f"{_PARAMETER}{i}") for i in range(len(constants)))), tuple(constants)
