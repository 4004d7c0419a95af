"""Syntax trees as texts, with white space everywhere. The parser must read each text back to the same tree."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from lark import Token

from penstock.query.syntax import ast_nodes as ast

_INFIX = {"or": "||", "and": "&&"}
_PREFIX = {"not": "!", "neg": "-", "pos": "+"}


@singledispatch
def printed(node: Any) -> str:
    raise TypeError(node)


def _all(nodes: Any, separator: str = " ") -> str:
    return separator.join(map(printed, nodes))


@printed.register
def _(node: Token) -> str:
    return str(node)


# ---- terms and triples
@printed.register
def _(node: ast.LiteralSyntax) -> str:
    return f"{node.string}{node.lang}" if node.lang is not None else f"{node.string}^^{node.datatype}"


@printed.register
def _(node: ast.BlankProperties) -> str:
    return f"[ {_all(node.properties, ' ; ')} ]"


@printed.register
def _(node: ast.Collection) -> str:
    return f"( {_all(node.items)} )"


@printed.register
def _(node: ast.VerbObjects) -> str:
    return f"{printed(node.verb)} {_all(node.objects, ' , ')}"


@printed.register
def _(node: ast.PathSyntax) -> str:
    """Put every compound part in brackets, which are not in the tree."""
    parts = [printed(part) if isinstance(part, Token) else f"( {printed(part)} )" for part in node.parts]
    match node.operator:
        case "^":
            return f"^ {parts[0]}"
        case "!":
            members = [str(m) if isinstance(m, Token) else f"^ {m.parts[0]}" for m in node.parts]
            return f"! ( {' | '.join(members)} )"
        case "|" | "/":
            return f" {node.operator} ".join(parts)
        case operator:
            return f"{parts[0]} {operator}"


@printed.register
def _(node: ast.SameSubject) -> str:
    return f"{printed(node.subject)} {_all(node.properties, ' ; ')}"


@printed.register
def _(node: ast.TriplesBlock) -> str:
    return " .\n".join(map(printed, node.subjects))


# ---- expressions
@printed.register
def _(node: ast.Operation) -> str:
    args = [f"( {printed(argument)} )" for argument in node.args]
    if node.name in _PREFIX:
        return f"{_PREFIX[node.name]} {args[0]}"
    if node.name in ("in", "notin"):
        return f"{args[0]} {'NOT IN' if node.name == 'notin' else 'IN'} ( {_all(node.args[1:], ' , ')} )"
    return f" {_INFIX.get(node.name, node.name)} ".join(args)


@printed.register
def _(node: ast.FunctionCall) -> str:
    return f"{node.function} ( {'DISTINCT ' if node.distinct else ''}{_all(node.args, ' , ')} )"


@printed.register
def _(node: ast.AggregateSyntax) -> str:
    inner = "*" if node.expr is None else printed(node.expr)
    separator = f" ; SEPARATOR = {node.separator}" if node.separator is not None else ""
    return f"{node.name} ( {'DISTINCT ' if node.distinct else ''}{inner}{separator} )"


@printed.register
def _(node: ast.ExistsSyntax) -> str:
    return f"{'NOT ' if node.negated else ''}EXISTS {printed(node.group)}"


@printed.register
def _(node: ast.AsVariable) -> str:
    return f"( {printed(node.expr)} AS {node.variable} )"


# ---- patterns
@printed.register
def _(node: ast.GroupPattern) -> str:
    return f"{{ {_all(node.elements)} }}"


@printed.register
def _(node: ast.Alternatives) -> str:
    return _all(node.branches, " UNION ")


@printed.register
def _(node: ast.OptionalPattern) -> str:
    return f"OPTIONAL {printed(node.group)}"


@printed.register
def _(node: ast.MinusPattern) -> str:
    return f"MINUS {printed(node.group)}"


@printed.register
def _(node: ast.GraphPattern) -> str:
    return f"GRAPH {node.name} {printed(node.group)}"


@printed.register
def _(node: ast.WindowPattern) -> str:
    return f"WINDOW {node.name} {printed(node.group)}"


@printed.register
def _(node: ast.StreamPattern) -> str:
    return f"STREAM {node.stream} {printed(node.window)} {printed(node.group)}"


@printed.register
def _(node: ast.FilterPattern) -> str:
    return f"FILTER ( {printed(node.condition)} )"


@printed.register
def _(node: ast.BindPattern) -> str:
    return f"BIND {printed(node.binding)}"


@printed.register
def _(node: ast.InlineData) -> str:
    rows = " ".join(f"( {_all(row)} )" for row in node.rows)
    return f"VALUES ( {_all(node.variables)} ) {{ {rows} }}"


# ---- queries
@printed.register
def _(node: ast.SelectClause) -> str:
    return f"SELECT {node.modifier} {_all(node.items) or '*'}"


@printed.register
def _(node: ast.Modifiers) -> str:
    def condition(expr: Any) -> str:
        return printed(expr) if isinstance(expr, ast.AsVariable) else f"( {printed(expr)} )"

    lines = []
    if node.group_by:
        lines.append("GROUP BY " + " ".join(map(condition, node.group_by)))
    if node.having:
        lines.append("HAVING " + " ".join(map(condition, node.having)))
    if node.order_by:
        keys = (f"{'DESC' if key.descending else 'ASC'} ( {printed(key.expr)} )" for key in node.order_by)
        lines.append("ORDER BY " + " ".join(keys))
    if node.offset is not None:
        lines.append(f"OFFSET {node.offset}")
    if node.limit is not None:
        lines.append(f"LIMIT {node.limit}")
    return "\n".join(lines)


@printed.register
def _(node: ast.DurationSyntax) -> str:
    return node.text


@printed.register
def _(node: ast.WindowSyntax) -> str:
    size = f" {printed(node.size)}" if node.size is not None else ""
    step = f" STEP {printed(node.step)}" if node.step is not None else ""
    return f"[ {node.kind}{size}{step}{' TUMBLING' if node.tumbling else ''} ]"


@printed.register
def _(node: ast.DatasetClause) -> str:
    if node.window is None:
        return f"FROM {'NAMED ' if node.named else ''}{node.source}"
    removed = "REMOVED " if node.removed else ""
    if node.window_name is not None:
        return f"{removed}FROM NAMED WINDOW {node.window_name} ON {node.source} {printed(node.window)}"
    return f"{removed}FROM {'NAMED ' if node.named else ''}STREAM {node.source} {printed(node.window)}"


def _tail(node: Any, head: str) -> str:
    where = f"WHERE {printed(node.where)}" if node.where is not None else ""
    values = printed(node.values) if node.values is not None else ""
    return f"{head}\n{_all(node.dataset)}\n{where}\n{printed(node.modifiers)}\n{values}"


@printed.register
def _(node: ast.SelectQuery) -> str:
    return _tail(node, printed(node.select))


@printed.register
def _(node: ast.ConstructQuery) -> str:
    return _tail(node, f"CONSTRUCT {{ {printed(node.template)} }}")


@printed.register
def _(node: ast.DescribeQuery) -> str:
    return _tail(node, f"DESCRIBE {_all(node.terms) or '*'}")


@printed.register
def _(node: ast.AskQuery) -> str:
    return _tail(node, "ASK")


@printed.register
def _(node: ast.Prologue) -> str:
    return "\n".join(f"BASE {iri}" if name is None else f"PREFIX {name} {iri}" for name, iri in node.declarations)


@printed.register
def _(node: ast.Registration) -> str:
    parts = [f"REGISTER {node.operator} {node.name}"]
    if node.parameters:
        parts.append(f"({' '.join(node.parameters)})")
    if node.computed_every is not None:
        parts.append(f"COMPUTED EVERY {printed(node.computed_every)}")
    if node.report_nonempty:
        parts.append("REPORT NONEMPTY")
    if node.starting_at is not None:
        parts.append(f"STARTING AT {printed(node.starting_at)}")
    if node.from_beginning:
        parts.append("FROM BEGINNING")
    return " ".join(parts) + " AS"


@printed.register
def _(node: ast.QueryText) -> str:
    first, *others = map(printed, node.prologues)
    registration = printed(node.registration) if node.registration is not None else ""
    return "\n".join([first, registration, *others, printed(node.query)])
