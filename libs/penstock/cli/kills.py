"""Which process of a cluster is killed when: a schedule that its seed gives again."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BEFORE_S, _DEAD_S = 0.4, 1.5


class Kill(NamedTuple):
    """One kill: `event` events are produced before; `before_s` from then to the kill, `dead_s` to the restart."""

    event: int
    victim: str
    before_s: float
    dead_s: float


def schedule(seed: int, instances: Iterable[str], events: int, kills: int) -> list[Kill]:
    """Return kills in order, at random points among the events; instances are named like `engine-0`.

    Every service (what stands before the number) is killed as often as every other, give or take one, and so are the
    instances of one service.
    """
    rng = random.Random(seed)  # noqa: S311 - nothing is secret here
    services: dict[str, list[str]] = {}
    for instance in instances:
        services.setdefault(service_of(instance), []).append(instance)
    victims = {name: _evenly(rng, of_it) for name, of_it in services.items()}
    turns = _evenly(rng, list(services))
    points = sorted(rng.sample(range(1, events + 1), min(kills, events)))
    return [
        Kill(point, next(victims[next(turns)]), rng.uniform(0.0, _BEFORE_S), rng.uniform(0.0, _DEAD_S))
        for point in points
    ]


def service_of(instance: str) -> str:
    """Return which service a process is an instance of."""
    return instance.rpartition("-")[0]


def _evenly(rng: random.Random, names: list[str]) -> Iterator[str]:
    """All of them in random order, and again in another."""
    while True:
        yield from rng.sample(names, len(names))
