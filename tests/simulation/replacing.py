"""Replacement of standing queries in a simulated cluster (ADR 95): the text of another query of the case, or the same text
with other windows, takes the place of a text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from property.script import Register
from support.held_rows import result_format, with_changes

if TYPE_CHECKING:
    import random

    from simulation.running import Driver

_REPLACES = 0.12  # of operations, behind which a query is replaced
_RANGE = re.compile(r"\[RANGE (\d+)ms")
_PUBLISHES = re.compile(r"REGISTER (?:STREAM|ISTREAM|DSTREAM|RSTREAM) <")


class Replacing:
    """Replaces queries now and then. `count`: how often it has done so."""

    def __init__(self, driver: Driver, rng: random.Random) -> None:
        self._driver, self._rng = driver, rng
        self._texts = [op for op in driver.case.operations if isinstance(op, Register) and not _fixed(op.text)]
        self.count = 0

    def step(self) -> None:
        """Now and then, replace one query, or several one after the other."""
        standing = [name for name, (operation, _) in self._driver.standing.items() if not _fixed(operation.text)]
        if self._rng.random() < _REPLACES and standing and self._texts:
            for _ in range(self._rng.choice([1, 1, 3])):
                self._replace(self._rng.choice(standing))

    def _replace(self, name: str) -> None:
        driver = self._driver
        before, record = driver.standing[name]
        given = self._rng.choice([*self._texts, before, before])
        text = _RANGE.sub(self._range, given.text) if self._rng.random() < 0.6 else given.text
        operation = replace(given, name=before.name, text=text)
        if text == before.text:
            return
        options = {"changes": with_changes(text), "result_format": result_format(text, avro=True)}
        replaced = driver.cluster.command(operation, lambda c: c.register(record.name, text, replace=True, **options))
        driver.standing[name] = operation, replaced
        self.count += 1
        for _ in range(self._rng.choice([0, 0, 1, 8])):
            driver.cluster.tick()

    def _range(self, found: re.Match[str]) -> str:
        """A narrower or wider window."""
        return f"[RANGE {max(int(int(found[1]) * self._rng.choice([0.5, 0.7, 1, 1, 2, 3])), 1)}ms"


def _fixed(text: str) -> bool:
    """Whether a text publishes a stream, or reads one that is published."""
    return "/derived" in text or _PUBLISHES.match(text) is not None
