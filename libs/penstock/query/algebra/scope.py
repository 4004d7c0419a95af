"""Static properties of the algebra: which variables occur, which variables are bound in every solution, and which
patterns can be correlated.

A *correlated* pattern is evaluated with the bindings of the rows on the left of the pattern. The alternative is a join
of independent results. Both give the same result only if no FILTER, BIND, OPTIONAL or MINUS in the pattern could
observe these bindings. `correlatable` tests this condition.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from penstock.query.algebra.tree import (
    AggregateCall,
    Bgp,
    Call,
    Distinct,
    Exists,
    Expr,
    Extend,
    Filter,
    Graph,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    OrderBy,
    PathTriple,
    Project,
    Reduced,
    Slice,
    Triple,
    Union,
    Values,
    Variable,
    WindowGraph,
)
from penstock.query.algebra.walk import children, expressions, nodes
from penstock.query.budget import current, spend

if TYPE_CHECKING:
    from collections.abc import Callable

Names = frozenset[str]
N = TypeVar("N")
T = TypeVar("T")
_NONE: Names = frozenset()


def _memoised(fact: Callable[[N], T]) -> Callable[[N], T]:
    """Add a cache to `fact`, a function of nodes. The cache lasts while one text is planned."""

    @wraps(fact)
    def found(node: N) -> T:
        budget = current()
        if budget is None:
            return fact(node)
        known = budget.facts.setdefault(fact, {})
        entry = known.get(id(node))
        if entry is None:
            budget.spend()
            entry = known[id(node)] = (node, fact(node))  # the entry retains the node, so that its id stays unique
        value: T = entry[1]
        return value

    return found


def pattern_variables(pattern: Triple | PathTriple) -> Names:
    """Return the variables of a triple or path pattern."""
    terms = [pattern.subject, pattern.object]
    if isinstance(pattern, Triple):
        terms.append(pattern.predicate)
    return frozenset(term.name for term in terms if isinstance(term, Variable))


def expression_variables(expr: Expr) -> Names:
    """Return the variables that an expression reads, including all variables of its EXISTS patterns."""
    match expr:
        case Variable():
            return frozenset((expr.name,))
        case Call():
            return frozenset().union(*map(expression_variables, expr.args))
        case Exists():
            return all_variables(expr.pattern)
        case AggregateCall():
            return expression_variables(expr.expr) if expr.expr is not None else _NONE
        case _:
            return _NONE


@_memoised
def visible(node: Node) -> Names:
    """Return the names of the in-scope variables of a pattern (SPARQL 1.1 §18.2.1)."""
    match node:
        case Bgp():
            return frozenset().union(*map(pattern_variables, node.patterns))
        case Join() | LeftJoin():
            return visible(node.left) | visible(node.right)
        case Minus():
            return visible(node.left)
        case Filter() | OrderBy() | Distinct() | Reduced() | Slice() | WindowGraph():
            return visible(node.inner)
        case Extend():
            return visible(node.inner) | {node.variable.name}
        case Graph():
            own = frozenset((node.name.name,)) if isinstance(node.name, Variable) else _NONE
            return visible(node.inner) | own
        case Union():
            return frozenset().union(*map(visible, node.branches))
        case Values():
            return frozenset(variable.name for variable in node.variables)
        case Group():
            return frozenset(key.name for key in node.keys) | {out.name for out, _ in node.aggregates}
        case Project():
            return frozenset(variable.name for variable in node.variables)


@_memoised
def certain(node: Node) -> Names:
    """Return variables that every solution of a pattern binds. The result can lack some of these variables."""
    match node:
        case Join():
            return certain(node.left) | certain(node.right)
        case LeftJoin() | Minus():
            return certain(node.left)
        case Filter() | OrderBy() | Distinct() | Reduced() | Slice() | WindowGraph():
            return certain(node.inner)
        case Extend():
            return certain(node.inner)
        case Graph():
            own = frozenset((node.name.name,)) if isinstance(node.name, Variable) else _NONE
            return certain(node.inner) | own
        case Union():
            return frozenset.intersection(*map(certain, node.branches)) if node.branches else _NONE
        case Values():
            return frozenset(
                variable.name
                for i, variable in enumerate(node.variables)
                if node.rows and all(row[i] is not None for row in node.rows)
            )
        case Group():
            counts = {out.name for out, call in node.aggregates if call.name == "count"}
            return (certain(node.inner) & {key.name for key in node.keys}) | counts
        case Project():
            return certain(node.inner) & visible(node)
        case _:
            return visible(node)


@_memoised
def all_variables(node: Node) -> Names:
    """Return all variables of a pattern, including variables in expressions and in MINUS. The result does not contain
    variables that a sub-select hides.
    """
    match node:
        case Join() | Minus():
            return all_variables(node.left) | all_variables(node.right)
        case LeftJoin():
            condition = expression_variables(node.condition) if node.condition is not None else _NONE
            return all_variables(node.left) | all_variables(node.right) | condition
        case Filter():
            return all_variables(node.inner) | expression_variables(node.condition)
        case Extend():
            return all_variables(node.inner) | expression_variables(node.expr) | {node.variable.name}
        case Graph():
            return all_variables(node.inner) | visible(node)
        case WindowGraph():
            return all_variables(node.inner)
        case Union():
            return frozenset().union(*map(all_variables, node.branches))
        case _:
            return visible(node)


@_memoised
def binding_variables(node: Node) -> Names:
    """Return the variables that a pattern binds or looks up. These variables occur in triple patterns, BIND, VALUES or
    graph names. Variables that occur only in expressions are not in the result.
    """
    match node:
        case Join() | LeftJoin() | Minus():
            return binding_variables(node.left) | binding_variables(node.right)
        case Filter() | WindowGraph():
            return binding_variables(node.inner)
        case Extend():
            return binding_variables(node.inner) | {node.variable.name}
        case Graph():
            own = frozenset((node.name.name,)) if isinstance(node.name, Variable) else _NONE
            return binding_variables(node.inner) | own
        case Union():
            return frozenset().union(*map(binding_variables, node.branches))
        case _:
            return visible(node)


def correlatable(node: Node, outer: Names) -> bool:
    """Return whether a pattern can be correlated with rows that bind the names `outer` (see the module docstring)."""
    spend()
    match node:
        case Bgp() | Values():
            return True
        case Join():
            return correlatable(node.left, outer) and correlatable(node.right, outer)
        case Union():
            return all(correlatable(branch, outer) for branch in node.branches)
        case Filter():
            seen = expression_variables(node.condition) & outer
            return seen <= certain(node.inner) and correlatable(node.inner, outer)
        case Extend():
            seen = expression_variables(node.expr) & outer
            return node.variable.name not in outer and seen <= certain(node.inner) and correlatable(node.inner, outer)
        case LeftJoin():
            right = all_variables(node.right)
            if node.condition is not None:
                right |= expression_variables(node.condition)
            return right & outer <= certain(node.left) and correlatable(node.left, outer)
        case Minus():
            return all_variables(node.right) & outer <= certain(node.left) and correlatable(node.left, outer)
        case Graph() | WindowGraph():
            return correlatable(node.inner, outer)
        case _:
            return False


def occurring(node: Node) -> Names:
    """Return all variable names in a pattern, including names that a sub-select hides."""
    names = set[str]()
    for inner in nodes(node):
        spend()
        names |= _own_variables(inner)
    return frozenset(names)


def _own_variables(node: Node) -> Names:
    """Return the variable names at the node itself, without the names in its sub-patterns."""
    names = frozenset[str]().union(*map(expression_variables, expressions(node)))
    match node:
        case Extend():
            return names | {node.variable.name}
        case Graph() if isinstance(node.name, Variable):
            return names | {node.name.name}
        case Bgp() | Values():
            return visible(node)
        case Group() | Project():
            return visible(node)
        case OrderBy():
            return _NONE
        case _:
            return names


@_memoised
def size(part: Triple | PathTriple | Node) -> int:
    """Return the size of a pattern: the number of its triple patterns plus the number of its nodes other than Bgp.
    Patterns of EXISTS do not count.
    """
    if isinstance(part, (Triple, PathTriple)):
        return 1
    own = len(part.patterns) if isinstance(part, Bgp) else 1
    return own + sum(map(size, children(part)))
