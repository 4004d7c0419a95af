"""The id-coded LSBench sample, on which the original engine was measured, in the form that this engine takes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import rdflib

from benchmarks.harness import need, script

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    import penstock
    from penstock.engine.answers.answer_values import Ids

STREAMS = "http://lsbench.example/stream/"
BATCH_MS = 100


class Sample:
    """The stored graph, streams, query texts and brute-force script of ../shared/data/lsbench-ids."""

    def __init__(self) -> None:
        self.folder: Path = need("data/lsbench-ids")
        self.script: Any = script(self.folder / "make_events.py")
        self.names: tuple[str, ...] = tuple(self.script.RATE)

    @cached_property
    def stored(self) -> list[tuple[int, int, int]]:
        """The stored graph, as numbers."""
        rows: list[tuple[int, int, int]] = self.script.rows("id_mr0_sibdataset.nt")
        return rows

    @cached_property
    def stored_text(self) -> bytes:
        """The stored graph in N-Triples."""
        return "".join("<{}> <{}> <{}> .\n".format(*map(iri, row)) for row in self.stored).encode()

    def text(self, query: str) -> str:
        """One of L1 to L6."""
        return (self.folder / "queries" / f"{query}.rq").read_text()

    def open(self, engine: penstock.Engine | None = None) -> penstock.Engine:
        """Load the stored graph and declare the streams in an engine (None: a new one), and return the engine."""
        import penstock  # noqa: PLC0415 - importers may replace parts of penstock first

        engine = engine or penstock.Engine()
        engine.load(self.stored_text, format="nt")
        for name in self.names:
            engine.declare_stream(STREAMS + name, batch_ms=BATCH_MS, timing="all" if name == "gps" else ())
        return engine

    def events(self, scale: int, until_ms: int) -> Events:
        """Return the tuples of the streams up to a time. `scale`: a multiple of their usual rate."""
        columns = {}
        for name in self.names:
            chosen = [(t, triple) for t, triple in self.script.stamped(name, scale) if t <= until_ms]
            times = np.array([t for t, _ in chosen], np.int64)
            columns[name] = (times, np.array([triple for _, triple in chosen], np.int64).reshape(-1, 3))
        return Events(columns)


class Events:
    """Columns of the streams, as numbers of the sample: name -> (times, triples)."""

    def __init__(self, columns: dict[str, tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
        self.columns = columns

    def encoded(self, engine: penstock.Engine, *, shift: int = 0, later_ms: int = 0) -> Feed:
        """Return the events as term ids of an engine. `shift` is added to all vertices, and `later_ms` to all times."""
        predicates = np.unique(np.concatenate([triples[:, 1] for _, triples in self.columns.values()]))
        vertices = np.unique(np.concatenate([triples[:, ::2].ravel() for _, triples in self.columns.values()]))
        names = engine.encode(rdflib.URIRef(iri(int(number))) for number in predicates)
        ids = engine.encode(rdflib.URIRef(iri(int(number) + shift)) for number in vertices)
        columns = {
            name: (
                times + later_ms,
                ids[np.searchsorted(vertices, triples[:, 0])],
                names[np.searchsorted(predicates, triples[:, 1])],
                ids[np.searchsorted(vertices, triples[:, 2])],
            )
            for name, (times, triples) in self.columns.items()
        }
        return Feed(engine, columns)

    def held(self, name: str, after: int, until: int) -> set[tuple[int, int, int]]:
        """Return the triples of a stream's window (after, until]."""
        times, triples = self.columns[name]
        low, high = np.searchsorted(times, (after, until), side="right")
        return {(int(s), int(p), int(o)) for s, p, o in triples[low:high]}


Cut: TypeAlias = "list[tuple[str, NDArray[np.int64], Ids, Ids, Ids]]"
"""Columns of some streams: IRI, times, subjects, predicates, objects."""


class Feed:
    """Pushes the streams into an engine, as columns of term ids."""

    def __init__(self, engine: penstock.Engine, columns: dict[str, tuple[NDArray[np.int64], Ids, Ids, Ids]]) -> None:
        self._engine = engine
        self._columns = columns

    def begin(self) -> None:
        """Advance all streams to 0, before which there are no events: queries registered before see everything."""
        for name in self._columns:
            self._engine.advance(STREAMS + name, 0)

    def cut(self, after: int, until: int) -> Cut:
        """Return the tuples of (after, until], by stream."""
        parts: Cut = []
        for name, columns in self._columns.items():
            low, high = np.searchsorted(columns[0], (after, until), side="right")
            if high > low:
                parts.append((STREAMS + name, *(column[low:high] for column in columns)))  # type: ignore[arg-type]
        return parts

    def push_cut(self, parts: Cut) -> int:
        """Push the result of `cut`. Returns the number of tuples."""
        for part in parts:
            self._engine.push_columns(*part)
        return sum(len(times) for _, times, *_ in parts)

    def push(self, after: int, until: int) -> int:
        """Push the tuples of (after, until]. Returns their number."""
        return self.push_cut(self.cut(after, until))

    def play(self, after: int, until: int, step: int = BATCH_MS) -> None:
        """Push and close one batch after another."""
        for low in range(after, until, step):
            self.push(low, low + step)
            self._engine.advance(None, low + step)


def iri(number: int) -> str:
    """Return the IRI of a number of the sample."""
    return f"http://lsbench.example/{number}"
