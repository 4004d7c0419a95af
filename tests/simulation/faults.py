"""Seeded faults: where a process dies or is held up, where the log does not answer, how late a record is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from penstock.log import TransientError
from penstock.log.faults import Point

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from penstock.log import Message


class Crash(BaseException):
    """The process ends here, between two effects: whatever errors it survives, it does not survive this."""


class Rates(NamedTuple):
    """Probabilities at each point; `delay` at each record."""

    crash: float = 0.0
    transient: float = 0.0
    delay: float = 0.0
    hold: float = 0.0


RATES = (Rates(), Rates(0.01, hold=0.02), Rates(0.03, 0.02, 0.1, 0.02), Rates(0.004, 0.05, 0.3), Rates(0.002, hold=0.1))


class SeededFaults:
    """Faults of one seed. `calm` ends them, so that a run can come to rest.

    `meanwhile` is what happens while a process is held up between two effects: the others go on.
    """

    def __init__(self, rng: Random, rates: Rates) -> None:
        self._rng = rng
        self._rates = rates
        self.calm = True
        self.crashes = 0
        self.meanwhile: Callable[[], None] = lambda: None

    def at(self, point: Point, owner: str) -> None:
        if self.calm:
            return
        if self._rng.random() < self._rates.crash:
            self.crashes += 1
            raise Crash(f"{point.name} {owner}")
        if point is not Point.COMMITTED and self._rng.random() < self._rates.transient:
            raise TransientError(f"{point.name} {owner}")
        if self._rng.random() < self._rates.hold:
            self.meanwhile()

    def delay_ms(self, message: Message) -> int:
        if self.calm or self._rng.random() >= self._rates.delay:
            return 0
        return self._rng.choice([5, 50, 400])
