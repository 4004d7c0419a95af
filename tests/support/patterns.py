"""Queries as values. The random generator makes them, the printer prints them, and the small evaluator evaluates them.

A body is SPARQL 1.1 without the dataset clauses; `WINDOW <w> {…}` is a node beside `GRAPH`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from support.terms import Term


@dataclass(frozen=True)
class Var:
    name: str


# ---- paths
@dataclass(frozen=True)
class Link:
    iri: Term


@dataclass(frozen=True)
class Inverse:
    path: Path


@dataclass(frozen=True)
class Sequence:
    first: Path
    second: Path


@dataclass(frozen=True)
class Alternative:
    first: Path
    second: Path


@dataclass(frozen=True)
class Repeat:
    """`*`, `+` or `?`."""

    path: Path
    mark: str


@dataclass(frozen=True)
class Negated:
    forward: tuple[Term, ...]
    inverse: tuple[Term, ...] = ()


Path: TypeAlias = Link | Inverse | Sequence | Alternative | Repeat | Negated
Node: TypeAlias = Var | Term


# ---- expressions
@dataclass(frozen=True)
class Call:
    name: str
    args: tuple[Expr, ...]


@dataclass(frozen=True)
class Exists:
    group: Group
    negated: bool = False


@dataclass(frozen=True)
class Aggregate:
    """An aggregate; with `argument` None, COUNT(*)."""

    name: str
    argument: Expr | None
    distinct: bool = False


Expr: TypeAlias = Var | Term | Call | Exists | Aggregate


# ---- elements of a group graph pattern
@dataclass(frozen=True)
class Triples:
    patterns: tuple[tuple[Node, Node | Path, Node], ...]


@dataclass(frozen=True)
class Optional:
    group: Group


@dataclass(frozen=True)
class Union:
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Minus:
    group: Group


@dataclass(frozen=True)
class Bind:
    expr: Expr
    var: Var


@dataclass(frozen=True)
class Values:
    variables: tuple[Var, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@dataclass(frozen=True)
class Graph:
    name: Node
    group: Group


@dataclass(frozen=True)
class Window:
    name: Term
    group: Group


@dataclass(frozen=True)
class Filter:
    expr: Expr


@dataclass(frozen=True)
class SubSelect:
    select: Select


@dataclass(frozen=True)
class Braces:
    group: Group


Element: TypeAlias = Triples | Optional | Union | Minus | Bind | Values | Graph | Window | Filter | SubSelect | Braces


@dataclass(frozen=True)
class Group:
    elements: tuple[Element, ...]


# ---- forms
@dataclass(frozen=True)
class Select:
    """`projection`: variables, or (expression, variable). `keys` None where there is no GROUP BY."""

    projection: tuple[Var | tuple[Expr, Var], ...]
    group: Group
    distinct: bool = False
    keys: tuple[Var, ...] | None = None
    having: Expr | None = None
    order: tuple[tuple[Expr, bool], ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(p.name if isinstance(p, Var) else p[1].name for p in self.projection)

    @property
    def aggregates(self) -> bool:
        return self.keys is not None or any(
            not isinstance(p, Var) and contains_aggregate(p[0]) for p in self.projection
        )


@dataclass(frozen=True)
class Ask:
    group: Group


@dataclass(frozen=True)
class Construct:
    template: tuple[tuple[Node, Node, Node], ...]
    group: Group


Body: TypeAlias = Select | Ask | Construct


def contains_aggregate(expr: Expr) -> bool:
    if isinstance(expr, Aggregate):
        return True
    return isinstance(expr, Call) and any(contains_aggregate(arg) for arg in expr.args)
