"""Traversal and rebuilding of algebra trees."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
    OrderKey,
    PathTriple,
    Project,
    Reduced,
    Slice,
    Term,
    Triple,
    Union,
    Values,
    Variable,
    WindowGraph,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct sub-patterns of a node, without the patterns of EXISTS."""
    match node:
        case Join() | LeftJoin() | Minus():
            return (node.left, node.right)
        case Union():
            return node.branches
        case Filter() | Extend() | Graph() | WindowGraph() | Group():
            return (node.inner,)
        case OrderBy() | Project() | Distinct() | Reduced() | Slice():
            return (node.inner,)
        case _:
            return ()


def expressions(node: Node) -> tuple[Expr, ...]:
    """Return the expressions of the node itself."""
    match node:
        case Filter():
            return (node.condition,)
        case LeftJoin():
            return (node.condition,) if node.condition is not None else ()
        case Extend():
            return (node.expr,)
        case OrderBy():
            return tuple(key.expr for key in node.keys)
        case Group():
            return tuple(call.expr for _, call in node.aggregates if call.expr is not None)
        case _:
            return ()


def exists_patterns(expr: Expr) -> Iterator[Node]:
    """Yield the pattern of each EXISTS in an expression."""
    if isinstance(expr, Exists):
        yield expr.pattern
    elif isinstance(expr, Call):
        for argument in expr.args:
            yield from exists_patterns(argument)


def nodes(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes below this node, depth first, including nodes in EXISTS."""
    yield root
    for child in children(root):
        yield from nodes(child)
    for expr in expressions(root):
        for pattern in exists_patterns(expr):
            yield from nodes(pattern)


def rebuild(node: Node, child: Callable[[Node], Node], expr: Callable[[Expr], Expr]) -> Node:
    """Return a copy of a node, with `child` applied to its sub-patterns and `expr` to its expressions."""
    match node:
        case LeftJoin():
            condition = expr(node.condition) if node.condition is not None else None
            return replace(node, left=child(node.left), right=child(node.right), condition=condition)
        case Join() | Minus():
            return replace(node, left=child(node.left), right=child(node.right))
        case Union():
            return replace(node, branches=tuple(map(child, node.branches)))
        case Filter():
            return replace(node, inner=child(node.inner), condition=expr(node.condition))
        case Extend():
            return replace(node, inner=child(node.inner), expr=expr(node.expr))
        case OrderBy():
            keys = tuple(OrderKey(expr(key.expr), key.descending) for key in node.keys)
            return replace(node, inner=child(node.inner), keys=keys)
        case Group():
            aggregates = tuple(
                (out, replace(call, expr=expr(call.expr) if call.expr is not None else None))
                for out, call in node.aggregates
            )
            return replace(node, inner=child(node.inner), aggregates=aggregates)
        case Graph() | WindowGraph() | Project() | Distinct() | Reduced() | Slice():
            return replace(node, inner=child(node.inner))
        case _:
            return node


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """Return a copy of a pattern with renamed variables. Variables in EXISTS are renamed, too. `names`: the new name
    for each old name.
    """

    def variable(old: Variable) -> Variable:
        return replace(old, name=names.get(old.name, old.name))

    def term(old: Term) -> Term:
        return variable(old) if isinstance(old, Variable) else old

    def expr(old: Expr) -> Expr:
        match old:
            case Variable():
                return variable(old)
            case Call():
                return replace(old, args=tuple(map(expr, old.args)))
            case Exists():
                return replace(old, pattern=rename(old.pattern, names))
            case AggregateCall():
                return replace(old, expr=None if old.expr is None else expr(old.expr))
            case _:
                return old

    def pattern(old: Triple | PathTriple) -> Triple | PathTriple:
        if isinstance(old, PathTriple):
            return replace(old, subject=term(old.subject), object=term(old.object))
        return replace(old, subject=term(old.subject), predicate=term(old.predicate), object=term(old.object))

    def inner(old: Node) -> Node:
        return rename(old, names)

    match node:
        case Bgp():
            return replace(node, patterns=tuple(map(pattern, node.patterns)))
        case Values():
            return replace(node, variables=tuple(map(variable, node.variables)))
        case Graph() if isinstance(node.name, Variable):
            return replace(node, name=variable(node.name), inner=inner(node.inner))
        case Extend():
            return replace(node, inner=inner(node.inner), variable=variable(node.variable), expr=expr(node.expr))
        case Project():
            return replace(node, inner=inner(node.inner), variables=tuple(map(variable, node.variables)))
        case Group():
            rebuilt = rebuild(node, inner, expr)
            assert isinstance(rebuilt, Group)
            outs = tuple((variable(out), call) for out, call in rebuilt.aggregates)
            return replace(rebuilt, keys=tuple(map(variable, node.keys)), aggregates=outs)
        case _:
            return rebuild(node, inner, expr)
