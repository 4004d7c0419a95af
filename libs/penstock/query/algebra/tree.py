"""The algebra: the meaning of a query, independent of its execution (SPARQL 1.1 §18).

Terms and expressions are frozen values. Every node and triple has an offset in the query's text (`at`) for error
messages. Comparisons for equality ignore this offset. Classes without a docstring are the operators of these names in
SPARQL 1.1 §18.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

_AT = field(default=-1, compare=False, repr=False)


# ---- terms
@dataclass(frozen=True, slots=True)
class Iri:
    value: str
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal. `datatype` is always an IRI: xsd:string for simple literals, rdf:langString if `lang` is set."""

    lexical: str
    datatype: str
    lang: str = ""
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a query. A blank node of a pattern becomes a variable named `_:label`, which answers do not
    contain.
    """

    name: str
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Parameter(Literal):
    """A place at which each member of a query set has a constant. `lexical`: the name of the declared parameter.

    The translation treats a parameter as a literal. The text therefore has the same meaning as a text with constants in
    these places.
    """

    @classmethod
    def of(cls, name: str, at: int) -> Parameter:
        """Return an occurrence of the declared parameter `name`."""
        return cls(name, "", at=at)


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node of a CONSTRUCT or INSERT template, or of INSERT DATA. In patterns, a blank node is a Variable."""

    label: str
    at: int = _AT


Term: TypeAlias = Iri | Literal | Variable | BlankNode


# ---- property paths (predicate position)
@dataclass(frozen=True, slots=True)
class Link:
    iri: Iri


@dataclass(frozen=True, slots=True)
class Inverse:
    path: Path


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class ZeroOrMore:
    path: Path


@dataclass(frozen=True, slots=True)
class OneOrMore:
    path: Path


@dataclass(frozen=True, slots=True)
class ZeroOrOne:
    path: Path


@dataclass(frozen=True, slots=True)
class NegatedSet:
    """A negated property set, such as `!(a|^b)`. `forward`, `inverse`: the members of the set in each direction. None
    if the direction has no members.
    """

    forward: tuple[Iri, ...] | None
    inverse: tuple[Iri, ...] | None


Path: TypeAlias = Link | Inverse | Sequence | Alternative | ZeroOrMore | OneOrMore | ZeroOrOne | NegatedSet


# ---- expressions
@dataclass(frozen=True, slots=True)
class Call:
    """A call of an operator or function, named as in docs/plan-format.md (`=`, `and`, `strlen`, `cast:integer`, …).

    `extra`: an argument that is not an expression. For the function `iri`, this argument is the base IRI. For
    `window_start` and `window_end`, this argument is the IRI of the window.
    """

    name: str
    args: tuple[Expr, ...]
    extra: str = ""
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Exists:
    pattern: Node
    negated: bool
    at: int = _AT


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate. `name`: count, sum, avg, min, max, sample, group_concat. `expr` is None for COUNT(*)."""

    name: str
    expr: Expr | None
    distinct: bool = False
    separator: str = " "
    at: int = _AT


Expr: TypeAlias = Iri | Literal | Variable | Call | Exists | AggregateCall
# Aggregates occur only in Group.aggregates after translation; elsewhere they are replaced by variables.


# ---- patterns
@dataclass(frozen=True, slots=True)
class Triple:
    subject: Term
    predicate: Term
    object: Term
    at: int = _AT


@dataclass(frozen=True, slots=True)
class PathTriple:
    subject: Term
    path: Path
    object: Term
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Bgp:
    """A basic graph pattern. Paths that consist of links, inverses and sequences only are given as triples."""

    patterns: tuple[Triple | PathTriple, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Join:
    left: Node
    right: Node
    at: int = _AT


@dataclass(frozen=True, slots=True)
class LeftJoin:
    left: Node
    right: Node
    condition: Expr | None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Filter:
    inner: Node
    condition: Expr
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Node, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Minus:
    left: Node
    right: Node
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Extend:
    inner: Node
    variable: Variable
    expr: Expr
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Graph:
    """`GRAPH name {…}`. `name`: a stored graph, the window of a stream (by the stream's IRI), or a variable."""

    name: Iri | Variable
    inner: Node
    at: int = _AT


@dataclass(frozen=True, slots=True)
class WindowGraph:
    """`WINDOW <w> {…}` (RSP-QL)."""

    name: Iri
    inner: Node
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Values:
    """Inline data (VALUES). None stands for UNDEF."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Group:
    """Grouping with aggregates. `keys`: the variables of GROUP BY. If GROUP BY has an expression, an Extend below the
    Group binds the value of the expression to a variable. `implicit`: true if there is no GROUP BY.
    """

    inner: Node
    keys: tuple[Variable, ...]
    aggregates: tuple[tuple[Variable, AggregateCall], ...]
    implicit: bool
    at: int = _AT


@dataclass(frozen=True, slots=True)
class OrderKey:
    expr: Expr
    descending: bool = False


@dataclass(frozen=True, slots=True)
class OrderBy:
    inner: Node
    keys: tuple[OrderKey, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Project:
    inner: Node
    variables: tuple[Variable, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Distinct:
    inner: Node
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Reduced:
    inner: Node
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Slice:
    inner: Node
    offset: int
    limit: int | None
    at: int = _AT


Node: TypeAlias = (
    Bgp
    | Join
    | LeftJoin
    | Filter
    | Union
    | Minus
    | Extend
    | Graph
    | WindowGraph
    | Values
    | Group
    | OrderBy
    | Project
    | Distinct
    | Reduced
    | Slice
)
