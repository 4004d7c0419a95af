"""Projection pushdown: drops each column after its last use. This saves time, because every scan copies its output
columns row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.planning.relations import Spec

# operators that pass all columns on, and whose rows do not depend on columns that are not used later
_HANDING_ON = frozenset(("slice", "distinct", "reduced"))
_MAX_STEPS = 64  # deeper operators retain all columns, because the sets of used columns would grow with the depth


def prune_columns(root: Spec, shown: frozenset[int]) -> Spec:
    """Return the root of a plan that yields the same rows as the plan of `root`, but only with the slots `shown`. Only
    a plan with a projection at the top changes. Only the operators slice, distinct, reduced and order can be above this
    projection.

    The projection loses columns of parameters. These columns are not needed, because a member determines the values of
    its parameters. Existing nodes are not modified.
    """
    if root["op"] in _HANDING_ON:
        return {**root, "in": prune_columns(root["in"], shown)}
    if root["op"] == "order" and (read := _read(root)) is not None:
        return {**root, "in": prune_columns(root["in"], shown | read)}
    if root["op"] != "project":
        return root
    slots = [slot for slot in root["slots"] if slot in shown]
    return {**root, "slots": slots, "in": _keeping(root["in"], frozenset(slots))}


def _keeping(node: Spec, needed: frozenset[int]) -> Spec:
    """Return a plan that yields the rows of `node` with the columns `needed`, and possibly with other columns."""
    steps: list[Spec] = []
    while len(steps) < _MAX_STEPS and (read := _read(node)) is not None:
        steps.append({**node, "keep": sorted(needed)} if node["op"] == "scan" else node)
        needed |= read
        node = node["in"]
    for step in reversed(steps):
        node = {**step, "in": node}
    return node


def _read(node: Spec) -> frozenset[int] | None:
    """Return the slots that a unary operator reads or binds. None if the pushdown ends at the operator."""
    match node["op"]:
        case "scan":
            graph = frozenset((node["graph"],)) if "graph" in node else frozenset[int]()
            return graph.union(term["var"] for term in (node["s"], node["p"], node["o"]) if "var" in term)
        case "filter" | "extend":
            return _variables(node["expr"])
        case "order":
            keys = [_variables(key["expr"]) for key in node["keys"]]
            if None in keys:
                return None
            member = [] if node.get("member") is None else [node["member"]]
            return frozenset(member).union(*(read for read in keys if read is not None))
        case _:
            return None


def _variables(expression: Spec) -> frozenset[int] | None:
    """Return the slots that an expression reads. None if the expression contains an EXISTS, because the variables of an
    EXISTS are in a sub-plan.
    """
    found, parts = set[int](), [expression]
    while parts:
        part: dict[str, Any] = parts.pop()
        if "exists" in part:
            return None
        if "var" in part:
            found.add(part["var"])
        parts += part.get("args", ())
    return frozenset(found)
