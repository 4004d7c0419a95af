"""Columns that nobody reads end at the last scan that does: each one that a scan hands on is gathered row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.query.planning.context import Spec

# Operators that hand all columns on, and whose rows are the same with fewer of those that the answer does not show.
_HANDING_ON = frozenset(("slice", "distinct", "reduced"))


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
    match node["op"]:
        case "scan":
            read = frozenset(_slots([node["s"], node["p"], node["o"]])) | {node.get("graph", -1)} - {-1}
            return {**node, "in": _keeping(node["in"], wanted | read), "keep": sorted(wanted)}
        case "filter" | "extend" if not _tests_patterns(node["expr"]):
            return {**node, "in": _keeping(node["in"], wanted | frozenset(_slots(node["expr"])))}
        case _:
            return node


def _slots(spec: Any) -> Iterator[int]:
    """The variables of terms or of an expression."""
    if isinstance(spec, list):
        for item in spec:
            yield from _slots(item)
    elif isinstance(spec, dict):
        if "var" in spec:
            yield spec["var"]
        for value in spec.values():
            yield from _slots(value)


def _tests_patterns(expression: Spec) -> bool:
    return "exists" in expression or any(_tests_patterns(argument) for argument in expression.get("args", ()))
