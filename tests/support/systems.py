"""One interface for the model and the engine, so that every case can run with both."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import penstock
from support.answers import Answer, from_api
from support.oracle import OracleEngine

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Reported:
    """One evaluation as a consumer sees it."""

    query: str
    time: int
    windows: dict[str, tuple[int | None, int]]
    answer: Answer
    fault: str | None = None  # of the added and removed rows


class OracleSystem:
    """The model of docs/semantics.md. A restart does not change it."""

    kind = "oracle"

    def __init__(self, *, shards: int = 1, data_dir: Path | None = None) -> None:
        self.model = OracleEngine()

    def declare(self, iri: str, **settings: Any) -> None:
        self.model.declare_stream(iri, **settings)

    def load(self, data: str, graph: str | None = None) -> None:
        self.model.load(data, graph)

    def update(self, text: str, operations: Any = None) -> None:
        self.model.update(text, operations)

    def register(self, text: str, name: str | None = None, meaning: Any = None) -> str:
        return self.model.register(text, name, meaning).name

    def stop(self, name: str) -> None:
        self.model.stop(name)

    def push(self, iri: str, time: int, data: str, syntax: str = "nt") -> None:
        self.model.push(iri, data, time, syntax)

    def push_many(self, iri: str, events: list[tuple[int, str]], syntax: str = "nt") -> None:
        for time, data in events:
            self.model.push(iri, data, time, syntax)

    def advance(self, iri: str | None, time: int) -> None:
        self.model.advance(iri, time)

    def poll(self, name: str) -> list[Reported]:
        return [Reported(e.query, e.time, e.windows, e.answer) for e in self.model.queries[name].poll()]

    def ask(self, text: str, meaning: Any = None, *, ordered: bool = False) -> Answer:
        return self.model.query(text, meaning)

    def late(self, iri: str) -> int:
        return len(self.model.late(iri))

    def restart(self, *, crash: bool = False) -> None:
        pass

    def close(self) -> None:
        pass


def counted(answer: Any) -> Counter[Any]:
    """Return the rows of solutions with their multiplicities, or the triples of a graph. True counts as one row."""
    if isinstance(answer, bool):
        return Counter([True] if answer else [])
    return Counter(frozenset(row.items()) if isinstance(row, dict) else row for row in answer)


class EngineSystem:
    """`penstock.Engine` through its public API only.

    `changes`: registers some queries with `changes`, where that is possible, and checks added and removed rows.
    """

    kind = "engine"

    def __init__(
        self, *, shards: int = 1, data_dir: Path | None = None, engine: Any = None, changes: bool = False
    ) -> None:
        self.shards, self.data_dir = shards, data_dir
        self.engine = self._open() if engine is None else engine
        self.handles: dict[str, Any] = {}
        self.before: dict[str, Counter[Any]] = {}  # the last answer of each query with `changes`
        self._changes = changes
        self._copies = 0

    def _open(self) -> Any:
        return penstock.Engine(data_dir=None if self.data_dir is None else str(self.data_dir), shards=self.shards)

    def declare(self, iri: str, **settings: Any) -> None:
        self.engine.declare_stream(iri, **settings)

    def load(self, data: str, graph: str | None = None) -> None:
        self.engine.load(data.encode(), graph=graph, format="nt")

    def update(self, text: str, operations: Any = None) -> None:
        del operations
        self.engine.update(text)

    def register(self, text: str, name: str | None = None, meaning: Any = None) -> str:
        handle = self._registered(text, name)
        self.handles[handle.name] = handle
        if self._changes and handle.changes:
            self.before[handle.name] = Counter()
        return str(handle.name)

    def _registered(self, text: str, name: str | None) -> Any:
        if self._changes and random.Random(text).random() < 0.4:
            with suppress(penstock.QueryError):
                return self.engine.register(text, name=name, changes=True)
        return self.engine.register(text, name=name)

    def stop(self, name: str) -> None:
        self.handles.pop(name).stop()
        self.before.pop(name, None)

    def push(self, iri: str, time: int, data: str, syntax: str = "nt") -> None:
        self.engine.push(iri, data, timestamp=time, format=syntax)

    def push_many(self, iri: str, events: list[tuple[int, str]], syntax: str = "nt") -> None:
        self.engine.push_events(iri, events, syntax)

    def advance(self, iri: str | None, time: int) -> None:
        self.engine.advance(iri, time)

    def poll(self, name: str) -> list[Reported]:
        ordered = False
        return [
            Reported(e.query, e.time, dict(e.windows), from_api(e.answer, ordered=ordered), self._fault(e))
            for e in self.handles[name].poll()
        ]

    def _fault(self, evaluation: Any) -> str | None:
        """Compare the added and removed rows of an evaluation with the multiset differences of the answers."""
        if evaluation.query not in self.before:
            return None
        added, removed = counted(evaluation.added), counted(evaluation.removed)
        now, before = counted(evaluation.answer), self.before[evaluation.query]
        self.before[evaluation.query] = now
        if (added, removed) == (now - before, before - now):
            return None
        return f"added {added}, removed {removed}, and the answer is {now} after {before}"

    def ask(self, text: str, meaning: Any = None, *, ordered: bool = False) -> Answer:
        return from_api(self.engine.query(text), ordered=ordered)

    def late(self, iri: str) -> int:
        return len(self.engine.late(iri))

    def restart(self, *, crash: bool = False) -> None:
        """Close the engine and open it again; or, for `crash`, take a checkpoint and continue from a copy of its
        folder.
        """
        assert self.data_dir is not None
        if crash:
            self.engine.checkpoint()
            self._copies += 1
            copy = self.data_dir.with_name(f"{self.data_dir.name}-{self._copies}")
            shutil.copytree(self.data_dir, copy)
            self.engine.close()
            self.data_dir = copy
        else:
            self.engine.close()
        self.engine = self._open()
        self.handles = {name: self._handle(name) for name in self.handles}

    def _handle(self, name: str) -> Any:
        queries = self.engine.queries
        if isinstance(queries, dict):
            return queries[name]
        return next(query for query in queries if query.name == name)

    def close(self) -> None:
        self.engine.close()
