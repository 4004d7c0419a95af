"""Join order: an exhaustive search of left-deep orders for few elements, and a greedy choice for more.

Graph exploration (Wukong §5.1) is a left-deep pipeline. The cost of an order is therefore the sum of its intermediate
rows.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.query.algebra.scope import Names

T = TypeVar("T")

EXHAUSTIVE = 8
"""Maximum number of elements for an exhaustive search. With 8 elements, the search examines 2^8 sets."""

_STEP = 1.0  # cost per row of a look-up, even without matches


def best_order(
    elements: Sequence[T],
    bound: Names,
    binds: Callable[[T], Names],
    fanout: Callable[[T, Names], tuple[float, float]],
    *,
    search: bool = True,
) -> list[int]:
    """Return the cheapest order of `elements` that was found, as a list of their positions. `search`: whether an
    exhaustive search is allowed. `bound`: names that are bound before the first join.

    `binds` returns the names that an element binds. `fanout(element, bound)` returns the number of matches per row, and
    a one-time cost. Names in `bound` that the element does not bind have no effect on this result.
    """
    if len(elements) < 2:
        return list(range(len(elements)))
    if search and len(elements) <= EXHAUSTIVE:
        return _exhaustive(elements, bound, binds, fanout)
    return _greedy(elements, bound, binds, fanout)


def _exhaustive(
    elements: Sequence[T],
    bound: Names,
    binds: Callable[[T], Names],
    fanout: Callable[[T, Names], tuple[float, float]],
) -> list[int]:
    names = [binds(element) for element in elements]
    known: list[dict[Names, tuple[float, float]]] = [{} for _ in elements]
    best: dict[int, tuple[float, float, list[int], Names]] = {0: (0.0, 1.0, [], bound)}
    for chosen in range(1 << len(elements)):
        cost, rows, order, seen = best[chosen]
        for i, element in enumerate(elements):
            if chosen >> i & 1:
                continue
            own = seen & names[i]
            figures = known[i].get(own)
            if figures is None:
                figures = known[i][own] = fanout(element, own)
            matches, once = figures
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
    names = [binds(element) for element in elements]
    readers: dict[str, list[int]] = {}
    for i, own in enumerate(names):
        for name in own:
            readers.setdefault(name, []).append(i)
    costs = [sum(fanout(element, bound & names[i])) for i, element in enumerate(elements)]
    queue = [(cost, i) for i, cost in enumerate(costs)]
    heapify(queue)
    order: list[int] = []
    seen = set(bound)
    left = set(range(len(elements)))
    while left:
        cost, chosen = heappop(queue)
        if chosen not in left or cost != costs[chosen]:
            continue  # the entry is outdated
        left.remove(chosen)
        order.append(chosen)
        fresh = names[chosen] - seen
        seen |= fresh
        for i in {i for name in fresh for i in readers[name] if i in left}:
            costs[i] = sum(fanout(elements[i], names[i] & seen))
            heappush(queue, (costs[i], i))
    return order
