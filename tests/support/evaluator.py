"""A small evaluator of bodies, which follows SPARQL 1.1 §18 literally: bags of solutions, bottom-up, no optimization."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from functools import cmp_to_key
from typing import TYPE_CHECKING, TypeAlias

import pyoxigraph as ox

from support import patterns as P
from support.answers import Answer, Rows
from support.paths import path_pairs
from support.terms import XSD, Term, Triple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Solution: TypeAlias = dict[str, Term]
TRUE, FALSE = (ox.Literal(word, datatype=ox.NamedNode(XSD + "boolean")) for word in ("true", "false"))


class ExpressionError(Exception):
    """SPARQL's `err`."""


class TooLarge(Exception):  # noqa: N818  not the fault of the query
    """An intermediate result is too large for brute force."""


ROW_LIMIT = 30_000


@dataclass
class Content:
    """One graph, with its triples by predicate."""

    triples: frozenset[Triple]
    by_predicate: dict[Term, list[Triple]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        for triple in self.triples:
            self.by_predicate[triple[1]].append(triple)

    def nodes(self) -> set[Term]:
        return {t for triple in self.triples for t in (triple[0], triple[2])}


@dataclass
class Data:
    """The data of one evaluation. `names`: the graphs that GRAPH ?g ranges over (other graphs are only found by name).
    `given`: in an EXISTS, the outer solution, whose variables are constants (§18.6). `selected`: the solutions of
    sub-selects, by their identity and that of the graph; they do not depend on `given`.
    """

    default: Content
    graphs: dict[str, Content] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    given: Solution = field(default_factory=dict)
    selected: dict[tuple[int, int], tuple[P.Select, Content, list[Solution]]] = field(default_factory=dict)


def evaluate(body: P.Body, data: Data) -> Answer:
    if isinstance(body, P.Ask):
        return bool(_group(body.group, data, data.default))
    if isinstance(body, P.Construct):
        return frozenset(_instances(body, _group(body.group, data, data.default)))
    rows = _select(body, data, data.default)
    names = body.variables
    return Rows(names, tuple(tuple(row.get(n) for n in names) for row in rows), ordered=bool(body.order))


def _instances(body: P.Construct, solutions: list[Solution]) -> Iterable[Triple]:
    for row in solutions:
        for pattern in body.template:
            s, p, o = (row.get(t.name) if isinstance(t, P.Var) else t for t in pattern)
            if isinstance(s, ox.NamedNode | ox.BlankNode) and isinstance(p, ox.NamedNode) and o is not None:
                yield s, p, o


# ---- patterns
def _group(group: P.Group, data: Data, active: Content) -> list[Solution]:
    solutions, filters = _without_filters(group, data, active)
    return [row for row in solutions if all(_true(f, row, data, active) for f in filters)]


def _without_filters(group: P.Group, data: Data, active: Content) -> tuple[list[Solution], list[P.Expr]]:
    solutions: list[Solution] = [{}]
    filters: list[P.Expr] = []
    for element in group.elements:
        match element:
            case P.Filter(expr):
                filters.append(expr)
            case P.Optional(inner):
                right, conditions = _without_filters(inner, data, active)
                solutions = _left_join(
                    solutions, right, lambda row, c=conditions: all(_true(f, row, data, active) for f in c)
                )
            case P.Minus(inner):
                solutions = _minus(solutions, _group(inner, data, active))
            case P.Bind(expr, var):
                solutions = [_extend(row, var.name, expr, data, active) for row in solutions]
                solutions = [row for found in solutions for row in _fitting([found], data)]
            case _:
                solutions = _join(solutions, _element(element, data, active))
    return solutions, filters


def _element(element: P.Element, data: Data, active: Content) -> list[Solution]:
    match element:
        case P.Triples(patterns):
            solutions: list[Solution] = [{}]
            for pattern in patterns:
                solutions = _join(solutions, _triple(pattern, active, data.given))
            return solutions
        case P.Union(groups):
            return [row for group in groups for row in _group(group, data, active)]
        case P.Values(variables, rows):
            table = [{v.name: t for v, t in zip(variables, row, strict=True) if t is not None} for row in rows]
            return _fitting(table, data)
        case P.Graph(P.Var(name), group):
            found = ((g, _group(group, data, data.graphs[g])) for g in data.names)
            joined = [row for g, rows in found for row in _join(rows, [{name: ox.NamedNode(g)}])]
            return _fitting(joined, data)
        case P.Graph(name, group) | P.Window(name, group):
            return _group(group, data, data.graphs.get(name.value, Content(frozenset())))  # type: ignore[union-attr]
        case P.SubSelect(select):
            key = id(select), id(active)
            if key not in data.selected:  # with what the key identifies, so that no other object gets its identity
                data.selected[key] = select, active, _select(select, replace(data, given={}), active)
            return _fitting(data.selected[key][2], data)
        case P.Braces(group):
            return _group(group, data, active)
        case _:
            raise AssertionError(element)


def _fitting(rows: list[Solution], data: Data) -> list[Solution]:
    """Return the rows that are compatible with `data.given`, without its variables."""
    fitting = (row for row in rows if _compatible(data.given, row))
    return [{name: term for name, term in row.items() if name not in data.given} for row in fitting]


def _triple(pattern: tuple[P.Node, P.Node | P.Path, P.Node], active: Content, given: Solution) -> list[Solution]:
    subject, predicate, object_ = (given.get(p.name, p) if isinstance(p, P.Var) else p for p in pattern)
    if isinstance(predicate, P.Path):
        ends = [None if isinstance(end, P.Var) else end for end in (subject, object_)]
        found: Iterable[tuple[Term, ...]] = path_pairs(predicate, active, ends[0], ends[1])
        places: tuple[P.Node, ...] = (subject, object_)
    else:
        constant = not isinstance(predicate, P.Var)
        found = active.by_predicate.get(predicate, []) if constant else active.triples  # type: ignore[arg-type]
        places = (subject, predicate, object_)
    return [row for row in (_bind(places, terms) for terms in found) if row is not None]


def _bind(places: tuple[P.Node, ...], terms: tuple[Term, ...]) -> Solution | None:
    row: Solution = {}
    for place, term in zip(places, terms, strict=True):
        if isinstance(place, P.Var):
            if row.setdefault(place.name, term) != term:
                return None
        elif place != term:
            return None
    return row


# ---- the algebra's operators
def _compatible(left: Solution, right: Solution) -> bool:
    return all(left[name] == term for name, term in right.items() if name in left)


def _candidates(left: list[Solution], right: list[Solution]) -> Callable[[Solution], list[Solution]]:
    """Return a function from a row of `left` to the rows of `right` that agree with it on the variables that every row
    binds.
    """
    if not left or not right:
        return lambda _: right
    shared = sorted(set.intersection(*(set(row) for row in left), *(set(row) for row in right)))
    index: dict[tuple[Term, ...], list[Solution]] = defaultdict(list)
    for row in right:
        index[tuple(row[name] for name in shared)].append(row)
    return lambda row: index.get(tuple(row[name] for name in shared), [])


def _join(left: list[Solution], right: list[Solution]) -> list[Solution]:
    near, joined = _candidates(left, right), list[Solution]()
    for a in left:
        joined += [a | b for b in near(a) if _compatible(a, b)]
        if len(joined) > ROW_LIMIT:
            raise TooLarge
    return joined


def _left_join(left: list[Solution], right: list[Solution], holds: Callable[[Solution], bool]) -> list[Solution]:
    joined: list[Solution] = []
    near = _candidates(left, right)
    for a in left:
        matches = [a | b for b in near(a) if _compatible(a, b)]
        joined += [row for row in matches if holds(row)] or [a]
    return joined


def _minus(left: list[Solution], right: list[Solution]) -> list[Solution]:
    near = _candidates(left, right)
    return [a for a in left if not any(a.keys() & b.keys() and _compatible(a, b) for b in near(a))]


def _extend(row: Solution, name: str, expr: P.Expr, data: Data, active: Content) -> Solution:
    try:
        return row | {name: _value(expr, row, data, active)}
    except ExpressionError:
        return row


def _select(select: P.Select, data: Data, active: Content) -> list[Solution]:
    solutions = _group(select.group, data, active)
    if select.aggregates:
        rows = _aggregated(select, solutions, data, active)
    else:
        rows = []
        for row in solutions:
            for p in select.projection:
                if not isinstance(p, P.Var):
                    row = _extend(row, p[1].name, p[0], data, active)  # noqa: PLW2901
            rows.append(row)
    rows = _ordered(select, rows, data, active)
    rows = [{n: row[n] for n in select.variables if n in row} for row in rows]
    if select.distinct:
        rows = [dict(key) for key in dict.fromkeys(tuple(row.items()) for row in rows)]
    return rows[select.offset : None if select.limit is None else select.offset + select.limit]


def _aggregated(select: P.Select, solutions: list[Solution], data: Data, active: Content) -> list[Solution]:
    groups: dict[tuple[Term | None, ...], list[Solution]] = defaultdict(list)
    for row in solutions:
        groups[tuple(row.get(key.name) for key in select.keys or ())].append(row)
    if select.keys is None and not groups:
        groups[()] = []
    result = []
    for key, members in groups.items():
        row = {v.name: t for v, t in zip(select.keys or (), key, strict=True) if t is not None}
        if select.having is None or _true(_folded(select.having, members, data, active), row, data, active):
            for p in select.projection:
                if not isinstance(p, P.Var):
                    row = _extend(row, p[1].name, _folded(p[0], members, data, active), data, active)
            result.append(row)
    return result


def _folded(expr: P.Expr, members: list[Solution], data: Data, active: Content) -> P.Expr:
    """Replace the aggregates of `expr` by their values over one group (by an unbound variable for an error)."""
    if isinstance(expr, P.Aggregate):
        try:
            return _aggregate(expr, members, data, active)
        except ExpressionError:
            return P.Var(" error")
    if isinstance(expr, P.Call):
        return P.Call(expr.name, tuple(_folded(arg, members, data, active) for arg in expr.args))
    return expr


def _aggregate(call: P.Aggregate, members: list[Solution], data: Data, active: Content) -> Term:
    if call.argument is None:
        chosen = {tuple(sorted(row.items())) for row in members} if call.distinct else members
        return integer(len(chosen))
    values, errors = [], 0
    for row in members:
        try:
            values.append(_value(call.argument, row, data, active))
        except ExpressionError:
            errors += 1
    if call.distinct:
        values = list(dict.fromkeys(values))
    if call.name == "COUNT":
        return integer(len(values))
    if errors or (call.name in ("MIN", "MAX") and not values):
        raise ExpressionError
    if call.name in ("MIN", "MAX"):  # ORDER BY's order: IRIs before literals (SPARQL 1.1 §18.5.1.5, §18.5.1.6)
        return (min if call.name == "MIN" else max)(values, key=_term_key)
    numbers = [number(value) for value in values]
    if call.name == "SUM":
        return integer(sum(numbers))
    if not numbers:
        return integer(0)
    return ox.Literal(f"{sum(numbers) / len(numbers):.12f}", datatype=ox.NamedNode(XSD + "decimal"))


def _ordered(select: P.Select, rows: list[Solution], data: Data, active: Content) -> list[Solution]:
    def compare(left: Solution, right: Solution) -> int:
        for expr, descending in select.order:
            a, b = (_sort_key(expr, row, data, active) for row in (left, right))
            if a != b:
                return (-1 if a < b else 1) * (-1 if descending else 1)
        return 0

    return sorted(rows, key=cmp_to_key(compare)) if select.order else rows


def _sort_key(expr: P.Expr, row: Solution, data: Data, active: Content) -> tuple[int, float, str]:
    try:
        term = _value(expr, row, data, active)
    except ExpressionError:
        return (0, 0, "")
    return _term_key(term)


def _term_key(term: Term) -> tuple[int, float, str]:
    if isinstance(term, ox.BlankNode):
        return (1, 0, term.value)
    if isinstance(term, ox.NamedNode):
        return (2, 0, term.value)
    if term.datatype.value in (XSD + "integer", XSD + "decimal", XSD + "double"):
        return (3, float(term.value), "")  # by value alone: 2, 2.0 and 2e0 tie
    return (4, 0, f"{term.value}@{term.language}" if term.language else term.value)


# ---- expressions
def integer(value: int) -> ox.Literal:
    return ox.Literal(str(value), datatype=ox.NamedNode(XSD + "integer"))


def number(term: Term) -> int:
    if isinstance(term, ox.Literal) and term.datatype.value == XSD + "integer":
        return int(term.value)
    raise ExpressionError


def _text(term: Term) -> str:
    if isinstance(term, ox.Literal) and term.datatype.value == XSD + "string":
        return term.value
    raise ExpressionError


def _iri(text: str) -> Term:
    try:
        return ox.NamedNode(text)
    except ValueError as error:  # a character that no IRI may have
        raise ExpressionError from error


def _true(expr: P.Expr, row: Solution, data: Data, active: Content) -> bool:
    try:
        return _boolean(_value(expr, row, data, active))
    except ExpressionError:
        return False


def _boolean(term: Term) -> bool:
    if term in (TRUE, FALSE):
        return term == TRUE
    if isinstance(term, ox.Literal) and term.datatype.value == XSD + "integer":
        return int(term.value) != 0
    return bool(_text(term))


def _value(expr: P.Expr, row: Solution, data: Data, active: Content) -> Term:
    match expr:
        case P.Var(name):
            if name not in row and name not in data.given:
                raise ExpressionError
            return data.given[name] if name in data.given else row[name]
        case P.Exists(group, negated):
            found = bool(_group(group, replace(data, given=row | data.given), active))
            return TRUE if found != negated else FALSE
        case P.Call(name, args):
            return _call(name, args, lambda e: _value(e, row, data, active), row | data.given)
        case P.Aggregate():
            raise AssertionError(expr)
        case _:
            return expr


def _call(name: str, args: tuple[P.Expr, ...], value: Callable[[P.Expr], Term], row: Solution) -> Term:
    def truth(found: bool) -> Term:
        return TRUE if found else FALSE

    match name:
        case "&&" | "||":
            return truth(_logic(name, args, value))
        case "!":
            return truth(not _boolean(value(args[0])))
        case "BOUND":
            return truth(args[0].name in row)  # type: ignore[union-attr]
        case "COALESCE":
            return _coalesce(args, value)
        case "IF":
            return value(args[1] if _boolean(value(args[0])) else args[2])
        case "IN" | "NOT IN":
            return truth(_among(args, value) == (name == "IN"))
    terms = [value(arg) for arg in args]
    match name:
        case "=" | "!=":
            return truth(_equal(terms[0], terms[1]) == (name == "="))
        case "<" | ">" | "<=" | ">=":
            return truth(_compare(name, terms[0], terms[1]))
        case "+":
            return integer(number(terms[0]) + number(terms[1]))
        case "-":
            return integer(number(terms[0]) - number(terms[1]))
        case "*":
            return integer(number(terms[0]) * number(terms[1]))
        case "isIRI":
            return truth(isinstance(terms[0], ox.NamedNode))
        case "isLiteral":
            return truth(isinstance(terms[0], ox.Literal))
        case "sameTerm":
            return truth(terms[0] == terms[1])
        case "STR":
            if isinstance(terms[0], ox.BlankNode):
                raise ExpressionError
            return ox.Literal(terms[0].value)
        case "IRI":
            return terms[0] if isinstance(terms[0], ox.NamedNode) else _iri(_text(terms[0]))
        case "LANG":
            if not isinstance(terms[0], ox.Literal):
                raise ExpressionError
            return ox.Literal(terms[0].language or "")
        case "LANGMATCHES":
            tag, tags = _text(terms[0]).lower(), _text(terms[1]).lower()
            return truth(tag == tags or tag.startswith(tags + "-"))
        case "STRLEN":
            return integer(len(_text(terms[0])))
        case "CONTAINS":
            return truth(_text(terms[1]) in _text(terms[0]))
        case "CONCAT":
            return ox.Literal("".join(map(_text, terms)))
        case _:
            raise AssertionError(name)


def _logic(name: str, args: tuple[P.Expr, ...], value: Callable[[P.Expr], Term]) -> bool:
    found, failed = [], False
    for arg in args:
        try:
            found.append(_boolean(value(arg)))
        except ExpressionError:
            failed = True
    decisive = name == "||"
    if decisive in found:
        return decisive
    if failed:
        raise ExpressionError
    return not decisive


def _coalesce(args: tuple[P.Expr, ...], value: Callable[[P.Expr], Term]) -> Term:
    for arg in args:
        try:
            return value(arg)
        except ExpressionError:
            continue
    raise ExpressionError


def _among(args: tuple[P.Expr, ...], value: Callable[[P.Expr], Term]) -> bool:
    first, failed = value(args[0]), False
    for arg in args[1:]:
        try:
            if _equal(first, value(arg)):
                return True
        except ExpressionError:
            failed = True
    if failed:
        raise ExpressionError
    return False


def _equal(left: Term, right: Term) -> bool:
    if left == right:
        return True
    if not (isinstance(left, ox.Literal) and isinstance(right, ox.Literal)):
        return False
    if left.language or right.language:
        return False  # only one has a language tag, or the tags differ
    if not {left.datatype.value, right.datatype.value} <= {XSD + "integer", XSD + "string", XSD + "boolean"}:
        raise ExpressionError
    if left.datatype != right.datatype:
        return False  # their values differ
    return left.datatype.value == XSD + "integer" and int(left.value) == int(right.value)


def _compare(name: str, left: Term, right: Term) -> bool:
    try:
        a, b = number(left), number(right)
    except ExpressionError:
        a, b = _text(left), _text(right)  # type: ignore[assignment]
    return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[name]


def bag_difference(left: Rows, right: Rows) -> Rows:
    """Return the rows of `left` without the rows of `right`; each row of `right` removes one equal row."""
    rest = Counter(left.rows) - Counter(right.rows)
    return Rows(left.variables, tuple(rest.elements()))
