"""Seeded faults: where a process dies, where the log does not answer, how late a record is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import TransientError
from penstock.log.faults import Point

if TYPE_CHECKING:
    from random import Random

    from penstock.log import Message


class Crash(Exception):  # noqa: N818
    """The process ends here, between two effects."""


class SeededFaults:
    """Faults of one seed. `calm` ends them, so that a run can come to rest."""

    def __init__(self, rng: Random, crash: float, transient: float, delay: float) -> None:
        self._rng = rng
        self._crash, self._transient, self._delay = crash, transient, delay
        self.calm = True
        self.crashes = 0

    def at(self, point: Point, owner: str) -> None:
        if self.calm:
            return
        if self._rng.random() < self._crash:
            self.crashes += 1
            raise Crash(f"{point.name} {owner}")
        if point is not Point.COMMITTED and self._rng.random() < self._transient:
            raise TransientError(f"{point.name} {owner}")

    def delay_ms(self, message: Message) -> int:
        if self.calm or self._rng.random() >= self._delay:
            return 0
        return self._rng.choice([5, 50, 400])
