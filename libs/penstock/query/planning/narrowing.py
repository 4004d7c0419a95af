"""Columns that nobody reads end at the last scan that does: each one that a scan hands on is gathered row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.planning.relations import Spec

# Operators that hand all columns on, and whose rows are the same with fewer of those that the answer does not show.
_HANDING_ON = frozenset(("slice", "distinct", "reduced"))
_MAX_STEPS = 64  # further down everything is handed on: what is read grows with each, and so would their lists


def narrowed(root: Spec, shown: frozenset[int]) -> Spec:
    """Return a plan's root that gives the slots `shown` only, where it begins with a projection.

    Other columns of that projection are the parameters, which the member says already. Nodes are not changed.
    """
    if root["op"] in _HANDING_ON:
        return {**root, "in": narrowed(root["in"], shown)}
    if root["op"] != "project":
        return root
    slots = [slot for slot in root["slots"] if slot in shown]
    return {**root, "slots": slots, "in": _keeping(root["in"], frozenset(slots))}


def _keeping(node: Spec, wanted: frozenset[int]) -> Spec:
    """The same rows with the columns that are wanted; others may be among them."""
    steps: list[Spec] = []
    while len(steps) < _MAX_STEPS and (read := _read(node)) is not None:
        steps.append({**node, "keep": sorted(wanted)} if node["op"] == "scan" else node)
        wanted |= read
        node = node["in"]
    for step in reversed(steps):
        node = {**step, "in": node}
    return node


def _read(node: Spec) -> frozenset[int] | None:
    """The slots that an operator of one input reads or binds; None where that is not plain to see."""
    match node["op"]:
        case "scan":
            graph = frozenset((node["graph"],)) if "graph" in node else frozenset[int]()
            return graph.union(term["var"] for term in (node["s"], node["p"], node["o"]) if "var" in term)
        case "filter" | "extend":
            return _variables(node["expr"])
        case _:
            return None


def _variables(expression: Spec) -> frozenset[int] | None:
    """Those of an expression; None where it tests patterns, whose variables are elsewhere."""
    found, parts = set[int](), [expression]
    while parts:
        part: dict[str, Any] = parts.pop()
        if "exists" in part:
            return None
        if "var" in part:
            found.add(part["var"])
        parts += part.get("args", ())
    return frozenset(found)
