"""Substitution by EXISTS. An EXISTS evaluates its pattern with the bindings of each outer row (SPARQL 1.1 §18.6).

In the pattern, each variable that the outer row binds is a constant. If a join gives the same result as the
substitution (see `joinable`), the plan evaluates the pattern without the outer rows, and joins the pattern's solutions
with these rows. Otherwise the plan evaluates the pattern from the outer rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.query.algebra.scope import (
    all_variables,
    certain,
    expression_variables,
    occurring,
    pattern_variables,
    visible,
)
from penstock.query.algebra.tree import (
    Alternative,
    Bgp,
    Call,
    Distinct,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Join,
    LeftJoin,
    Minus,
    Node,
    OneOrMore,
    OrderBy,
    Path,
    PathTriple,
    Project,
    Reduced,
    Sequence,
    Slice,
    Union,
    Variable,
    WindowGraph,
    ZeroOrMore,
    ZeroOrOne,
)
from penstock.query.algebra.walk import rebuild, rename
from penstock.query.budget import spend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.query.algebra.scope import Names


@dataclass(frozen=True, slots=True)
class Substitution:
    """The substitution of an EXISTS.

    - `certain`: names that are bound in every outer row.
    - `maybe`: names that are bound in some outer rows. The pattern does not bind these names, but expressions in the
      pattern can read these names.
    - `row`: slot of the row number.
    - `tests`: the conditions that select the outer rows of this substitution.

    Outer rows that bind different variables get different plans.
    """

    certain: Names
    maybe: Names
    row: int
    tests: tuple[Call, ...] = ()

    @property
    def names(self) -> Names:
        """All substituted names."""
        return self.certain | self.maybe


def is_sub_select(node: Node) -> bool:
    """Return whether the pattern is a sub-select, which is computed as a whole and joined with the outer rows."""
    return isinstance(node, Project | Distinct | Reduced | OrderBy | Slice | Group)


def joinable(node: Node, name: str) -> bool:
    """Return whether a join on variable `name` can replace the substitution of the variable in a pattern.

    The join can replace the substitution if two results are equal for every value. The first result is the solutions of
    the pattern with the value substituted. The second result is the solutions of the original pattern that are
    compatible with the value.
    """
    spend()
    match node:
        case Bgp():
            return not any(_reaches_itself(pattern, name) for pattern in node.patterns)
        case Join():
            return joinable(node.left, name) and joinable(node.right, name)
        case LeftJoin():
            right = all_variables(node.right)
            if node.condition is not None:
                right |= expression_variables(node.condition)
            if name in right and name not in certain(node.left):
                return False
            return joinable(node.left, name) and joinable(node.right, name)
        case Minus():  # the two sides do not share a substituted name, because it is a constant
            return name not in all_variables(node.right) and joinable(node.left, name)
        case Union():
            return all(joinable(branch, name) for branch in node.branches)
        case Filter():
            seen = name in expression_variables(node.condition)
            return (not seen or name in certain(node.inner)) and joinable(node.inner, name)
        case Extend():
            seen = name in expression_variables(node.expr)
            return (not seen or name in certain(node.inner)) and joinable(node.inner, name)
        case Graph() | WindowGraph():
            return joinable(node.inner, name)
        case _:
            return True


def _reaches_itself(pattern: object, name: str) -> bool:
    """Return whether the pattern is a path that has variable `name` as an end and can have length zero. Substitution
    would change the result of such a path. Between variables, the path matches only nodes of the graph. A constant need
    not be a node of the graph.
    """
    return isinstance(pattern, PathTriple) and name in pattern_variables(pattern) and _may_be_empty(pattern.path)


def _may_be_empty(path: Path) -> bool:
    match path:
        case ZeroOrMore() | ZeroOrOne():
            return True
        case Sequence():
            return all(map(_may_be_empty, path.parts))
        case Alternative():
            return any(map(_may_be_empty, path.parts))
        case Inverse() | OneOrMore():
            return _may_be_empty(path.path)
        case _:
            return False


# ---- GRAPH ?g {… ?g …}
def with_own_graph_names(node: Node, substituted: Names, numbers: Iterator[int]) -> Node:
    """In each GRAPH ?g {… ?g …}, replace the inner ?g by another variable, and compare its value with the graph's name
    afterwards. If an enclosing EXISTS substitutes a value for ?g, then ?g is the same constant inside and outside the
    GRAPH. Such a ?g is not replaced. Patterns of EXISTS stay unchanged.
    """

    def below(inner: Node) -> Node:
        return with_own_graph_names(inner, frozenset() if isinstance(node, Project) else substituted, numbers)

    node = rebuild(node, below, lambda expr: expr)
    if isinstance(node, Graph) and isinstance(node.name, Variable) and node.name.name not in substituted:
        return _apart_from_inside(node, node.name, numbers)
    return node


def _apart_from_inside(node: Graph, name: Variable, numbers: Iterator[int]) -> Node:
    if name.name not in occurring(node.inner):
        return node
    own = Variable(f"{name.name}#{next(numbers)}")
    inner = rename(node.inner, {name.name: own.name})
    outer = replace(node, inner=inner)
    if own.name not in visible(inner):
        return outer
    return Filter(outer, Call("or", (Call("not", (Call("bound", (own,)),)), Call("sameterm", (own, name)))))


def compatible(one: Variable, other: Variable) -> Call:
    """Return the condition that the values of two variables are compatible. Two values are compatible if at least one
    of the variables is unbound, or if the values are equal.
    """
    unbound = [Call("not", (Call("bound", (variable,)),)) for variable in (one, other)]
    return Call("or", (*unbound, Call("sameterm", (one, other))))
