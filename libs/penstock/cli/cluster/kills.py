"""The kill schedule of `demo_cluster`: which process is killed when. A seed makes the schedule reproducible."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BEFORE_S, _DEAD_S = 0.4, 1.5


class Kill(NamedTuple):
    """After `event` events are produced, the demo waits `before_s` seconds and then kills `victim`. The restart is
    `dead_s` seconds later.
    """

    event: int
    victim: str
    before_s: float
    dead_s: float


def schedule(seed: int, instances: Iterable[str], events: int, kills: int) -> list[Kill]:
    """Return kills in order, at random points among the events. Instances are named like `engine-0`.

    The name before the number is the service. The numbers of kills of two services differ by at most one. The numbers
    of kills of two instances of the same service also differ by at most one.
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
    """Return the service of a process."""
    return instance.rpartition("-")[0]


def _evenly(rng: random.Random, names: list[str]) -> Iterator[str]:
    """Yield all names in random order, again and again, each time in a new order."""
    while True:
        yield from rng.sample(names, len(names))
