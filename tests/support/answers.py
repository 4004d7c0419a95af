"""Answers of any engine in one form, and their comparison."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyoxigraph as ox
import rdflib

from support.terms import Row, Triple, comparable, from_rdflib


@dataclass(frozen=True)
class Rows:
    """A bag of solutions; if `ordered`, a list."""

    variables: tuple[str, ...]
    rows: tuple[Row, ...]
    ordered: bool = False


Answer: TypeAlias = bool | Rows | frozenset[Triple]


def from_api(answer: Any, *, ordered: bool = False) -> Answer:
    """Turn an answer of `Engine` (Solutions | bool | rdflib.Graph) into an Answer."""
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, rdflib.Graph):
        return frozenset(tuple(from_rdflib(term) for term in triple) for triple in answer)  # type: ignore[misc]
    variables = tuple(answer.variables)
    rows = tuple(tuple(from_rdflib(row[name]) if name in row else None for name in variables) for row in answer)
    return Rows(variables, rows, ordered)


def difference(expected: Answer, got: Answer) -> str | None:
    """Return None if the answers are equal except for the names of blank nodes, else a text of the differences."""
    if isinstance(expected, Rows) and isinstance(got, Rows):
        if sorted(expected.variables) != sorted(got.variables):
            return f"variables {expected.variables} / {got.variables}"
        order = [got.variables.index(name) for name in expected.variables]
        left = [tuple(map(comparable, row)) for row in expected.rows]
        right = [tuple(comparable(row[i]) for i in order) for row in got.rows]
        if expected.ordered and not any(isinstance(t, ox.BlankNode) for row in left for t in row) and left != right:
            return "the order of rows" if Counter(left) == Counter(right) else _bags(left, right)
        return None if isomorphic(left, right) else _bags(left, right)
    if isinstance(expected, frozenset) and isinstance(got, frozenset):
        left, right = ([tuple(map(comparable, t)) for t in side] for side in (expected, got))
        return None if isomorphic(left, right) else _bags(left, right)
    return None if expected is got else f"{expected!r} / {got!r}"


def _bags(expected: list[Any], got: list[Any]) -> str:
    missing, extra = Counter(expected) - Counter(got), Counter(got) - Counter(expected)
    return "\n".join(
        [f"{len(expected)} expected, {len(got)} got"]
        + [f"  missing {n} x {_show(row)}" for row, n in list(missing.items())[:8]]
        + [f"  extra   {n} x {_show(row)}" for row, n in list(extra.items())[:8]]
    )


def _show(row: Any) -> str:
    return " ".join("-" if term is None else str(term) for term in row)


def isomorphic(left: list[Any], right: list[Any]) -> bool:
    """Return whether a bijection of the blank nodes makes two bags of tuples equal."""
    if len(left) != len(right):
        return False
    if Counter(left) == Counter(right):
        return True
    ground = [Counter(row for row in side if not _blanks(row)) for side in (left, right)]
    if ground[0] != ground[1]:
        return False
    waiting: dict[Any, list[list[Any]]] = {}
    for part in _components(right):
        waiting.setdefault(_signature(part), []).append(part)
    for part in _components(left):
        others = waiting.get(_signature(part), [])
        found = next((i for i, other in enumerate(others) if _matches(part, other, {}, {})), None)
        if found is None:
            return False
        others.pop(found)
    return not any(waiting.values())


def _blanks(row: Any) -> list[Any]:
    return [term for term in row if isinstance(term, ox.BlankNode)]


def _components(rows: list[Any]) -> list[list[Any]]:
    """Return the rows with blank nodes, in parts that share none."""
    part_of: dict[Any, list[Any]] = {}
    for row in rows:
        blanks = _blanks(row)
        if not blanks:
            continue
        part = [row]
        for other in {id(found): found for blank in blanks if (found := part_of.get(blank)) is not None}.values():
            part += other
        part_of.update(dict.fromkeys((blank for member in part for blank in _blanks(member)), part))
    return list({id(part): part for part in part_of.values()}.values())


def _signature(rows: list[Any]) -> tuple[int, ...]:
    """Return what is equal for isomorphic rows."""
    colour = _colours(rows, {})
    return tuple(sorted(hash(tuple(colour.get(term, term) for term in row)) for row in rows))


def _matches(left: list[Any], right: list[Any], known_left: dict[Any, int], known_right: dict[Any, int]) -> bool:
    """Return whether such a bijection exists that maps nodes of `known_left` to nodes with the same number in
    `known_right`. It maps one more node, and refines the colours of all others by it.
    """
    colours = _colours(left, known_left), _colours(right, known_right)
    if sorted(colours[0].values()) != sorted(colours[1].values()):
        return False
    classes: dict[int, list[Any]] = {}
    for node, colour in colours[0].items():
        classes.setdefault(colour, []).append(node)
    open_classes = [colour for colour, nodes in classes.items() if len(nodes) > 1]
    if not open_classes:
        image = {colour: node for node, colour in colours[1].items()}
        mapping = {node: image[colour] for node, colour in colours[0].items()}
        return Counter(tuple(mapping.get(t, t) for t in row) for row in left) == Counter(right)
    colour = min(open_classes, key=lambda colour: len(classes[colour]))
    number = 1 + len(known_left)
    return any(
        _matches(left, right, known_left | {classes[colour][0]: number}, known_right | {other: number})
        for other, its_colour in colours[1].items()
        if its_colour == colour
    )


def _colours(rows: list[Any], known: dict[Any, int]) -> dict[Any, int]:
    """Return a hash of each blank node's number in `known` and its neighbourhood: no bijection maps a node to one with
    another hash.
    """
    colour = {term: known.get(term, 0) for row in rows for term in row if isinstance(term, ox.BlankNode)}
    for _ in range(4):
        seen: dict[Any, list[int]] = {node: [] for node in colour}
        for row in rows:
            key = tuple(colour.get(term, term) if isinstance(term, ox.BlankNode) else term for term in row)
            for place, term in enumerate(row):
                if term in seen:
                    seen[term].append(hash((place, key)))
        colour = {node: hash((colour[node], tuple(sorted(marks)))) for node, marks in seen.items()}
    return colour
