"""The order of joins: exhaustive over left-deep orders for few elements, greedy beyond.

Graph exploration (Wukong §5.1) is a left-deep pipeline, so the cost of an order is the sum of its intermediate rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.query.scope import Names

T = TypeVar("T")

EXHAUSTIVE = 8
"""Up to that many elements every order is considered (2^8 sets)."""

_STEP = 1.0  # a step that matches nothing still costs its look-ups


def best_order(
    elements: Sequence[T],
    bound: Names,
    binds: Callable[[T], Names],
    fanout: Callable[[T, Names], tuple[float, float]],
) -> list[int]:
    """Positions of `elements` in the cheapest order found.

    `binds` gives the names an element binds; `fanout(element, bound)` gives (matches a row, cost paid once).
    """
    if len(elements) <= EXHAUSTIVE:
        return _exhaustive(elements, bound, binds, fanout)
    return _greedy(elements, bound, binds, fanout)


def _exhaustive(
    elements: Sequence[T],
    bound: Names,
    binds: Callable[[T], Names],
    fanout: Callable[[T, Names], tuple[float, float]],
) -> list[int]:
    names = [binds(element) for element in elements]
    best: dict[int, tuple[float, float, list[int], Names]] = {0: (0.0, 1.0, [], bound)}
    for chosen in range(1 << len(elements)):
        cost, rows, order, seen = best[chosen]
        for i, element in enumerate(elements):
            if chosen >> i & 1:
                continue
            matches, once = fanout(element, seen)
            produced = rows * matches
            candidate = cost + once + rows * _STEP + produced
            target = chosen | 1 << i
            if target not in best or candidate < best[target][0]:
                best[target] = (candidate, produced, [*order, i], seen | names[i])
    return best[(1 << len(elements)) - 1][2]


def _greedy(
    elements: Sequence[T],
    bound: Names,
    binds: Callable[[T], Names],
    fanout: Callable[[T, Names], tuple[float, float]],
) -> list[int]:
    left = list(range(len(elements)))
    order: list[int] = []
    while left:
        costs = {i: fanout(elements[i], bound) for i in left}
        chosen = min(left, key=lambda i: (sum(costs[i]), i))
        left.remove(chosen)
        order.append(chosen)
        bound |= binds(elements[chosen])
    return order
