"""Reads and plans query texts in a loop: `python -m benchmarks.micro.planning ROUNDS [--unchecked] FILE.rq...`.

`--unchecked` replaces the budget's checks (docs/adr/0059-planning-budget.md) by functions that do nothing. Under
`valgrind --tool=callgrind`, runs with two numbers of rounds give the instructions of a round, whatever the load of the
machine. Texts that need a base IRI or another catalogue are left out, and named.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import penstock
from penstock.query.budget import Budget
from penstock.query.parser import parse
from penstock.query.planner import plan
from penstock.query.resolve import resolve
from penstock.query.templates import parametrise


class FixedCatalogue:
    """A catalogue in which every stream and graph exists, with invented counts."""

    placement = None
    is_stream = has_graph = timing = staticmethod(lambda _: True)
    batch_ms = staticmethod(lambda _: 100)
    retention_ms = staticmethod(lambda _: 10**9)
    label_stats = staticmethod(lambda *key: (1000 + key[2] * 37 % 500, 100 + key[2] % 50, 200 + key[2] % 70))
    degree = staticmethod(lambda *_: 10)

    def __init__(self) -> None:
        self._ids: dict[Any, int] = {}

    def term_id(self, term: Any) -> int:
        return self._ids.setdefault(term, len(self._ids) + 1)


def read_and_plan(text: str, catalogue: FixedCatalogue) -> None:
    template, constants = parametrise(resolve(parse(text), catalogue))
    plan(template, catalogue, grouped=True, sample=constants)


def _unchecked(*_: object, **__: object) -> None:
    pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--unchecked", action="store_true")
    arguments = parser.parse_args()
    if arguments.unchecked:
        for name in ("spend", "charge", "add_node", "look"):
            setattr(Budget, name, _unchecked)
    catalogue, texts = FixedCatalogue(), []
    for file in arguments.files:
        text = file.read_text(encoding="utf-8")
        try:
            read_and_plan(text, catalogue)
        except penstock.QueryError as error:
            print(f"{file.name} is left out: {error.message}")
        else:
            texts.append(text)
    began = time.process_time()
    for _ in range(arguments.rounds):
        for text in texts:
            read_and_plan(text, catalogue)
    used = time.process_time() - began
    print(f"{len(texts)} texts, {1e6 * used / max(1, arguments.rounds * len(texts)):.0f} µs of processor time each")


if __name__ == "__main__":
    main()
