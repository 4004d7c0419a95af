"""The text of EXPLAIN. The text shows a plan as a tree of operators, with estimates and with measurements of the last
execution.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SIDES = ("in", "left", "right", "inner")


def render(
    spec: Mapping[str, Any],
    labels: Mapping[int, tuple[str, float]],
    rows: Mapping[int, int],
    nanos: Mapping[int, int],
    outcomes: Mapping[int, str],
) -> str:
    """Return the tree of a plan as text, with the root first.

    All mappings have node ids as keys. `labels`: description and expected number of rows. `rows`: number of rows in the
    last execution. `nanos`: time in ns that the operator itself took in the last timed execution. `outcomes`: how the
    last execution evaluated the operator.
    """
    actual = {number: (count, nanos.get(number), outcomes.get(number)) for number, count in rows.items()}
    lines = list(_tree(spec["root"], labels, actual, 0, ""))
    for i, subplan in enumerate(spec["subplans"]):
        lines.append(f"sub-plan {i} (exists in an expression)")
        lines.extend(_tree(subplan["node"], labels, actual, 1, ""))
    return "\n".join(lines)


def _tree(
    node: Mapping[str, Any],
    labels: Mapping[int, tuple[str, float]],
    actual: Mapping[int, tuple[int, int | None, str | None]],
    depth: int,
    side: str,
) -> Iterator[str]:
    label, estimate = labels[node["id"]]
    line = f"{'  ' * depth}{side}{node['op']} {label}".rstrip()
    figures = f"est. {_short(estimate)} rows"
    if node["id"] in actual:
        rows, nanos, outcome = actual[node["id"]]
        figures += f", actual {rows} rows"
        if nanos is not None:
            figures += f", {nanos / 1000:.1f} µs"
        if node["op"] == "fork":  # the other rows come from its inner node, which was executed in this process
            figures += f", {rows - actual[node['inner']['id']][0]} rows from stores"
        if outcome is not None:
            figures += f"; {outcome}"
    yield f"{line}  ({figures})"
    for key in _SIDES:
        if key in node:
            yield from _tree(node[key], labels, actual, depth + 1, "" if key == "in" else f"{key}: ")
    for branch in node.get("inputs", ()):
        yield from _tree(branch, labels, actual, depth + 1, "")


def _short(rows: float) -> str:
    if not isfinite(rows):
        return "∞"
    return f"{rows:.0f}" if rows >= 10 or rows == int(rows) else f"{rows:.2g}"
