"""CityBench for tests: its query texts, its readings as events, and the answer expected at each instant.

The windows of its authors are [from, to), and ours are (from, to]; so every reading is moved by 1 ms.
"""

from __future__ import annotations

import argparse
import csv
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from support import shared
from support.answers import Answer, Rows
from support.header import Header, parse
from support.terms import XSD, Term, parse_triples

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "http://www.insight-centre.org/dataset/SampleEventService#"
Event = tuple[int, str]


def bundle() -> Path:
    return shared.need("data/citybench")


@dataclass(frozen=True)
class Text:
    """One query text; `graphs` are the IRIs of its FROM clauses."""

    name: str
    text: str
    header: Header

    @property
    def streams(self) -> list[str]:
        return [w.stream for w in self.header.windows]

    def instants(self, until: int) -> list[int]:
        """Return the instants at which a window reports, for a query whose first reading came just after 0."""
        return sorted({t for w in self.header.windows for t in range(w.step, until + 1, w.step)})


@functools.cache
def texts() -> tuple[Text, ...]:
    found = sorted((bundle() / "queries").glob("*.rq"))
    read = ((path.stem, path.read_text(encoding="utf-8")) for path in found)
    return tuple(Text(name, text, parse(text)) for name, text in read)


def static_file(graph: str) -> Path:
    """Map `…/SensorRepository.rdf` to the bundle's file (three texts spell its folder differently)."""
    return bundle() / "dataset" / (graph.rsplit("/", 1)[1].removesuffix(".rdf") + ".n3")


@functools.cache
def _static(graph: str) -> tuple[Any, ...]:
    return tuple(ox.parse(path=str(static_file(graph)), format=ox.RdfFormat.N3))


@functools.cache
def _sources() -> tuple[Any, Any]:
    module, dataset = shared.module("data/citybench/citybench2nq.py"), bundle() / "dataset"
    repository = module.read_repository(str(dataset / "SensorRepository.n3"))
    with (dataset / "MetaData" / "trafficMetaData.csv").open(encoding="utf-8") as table:
        distances = {row["REPORT_ID"]: row["DISTANCE_IN_METERS"] for row in csv.DictReader(table)}
    return repository, distances


def _events(stream: str, **options: Any) -> list[Event]:
    defaults = {"start": None, "end": None, "max_rows": None, "interval_ms": 1000, "rate": 1.0, "t0": 0}
    settings = argparse.Namespace(dir=str(bundle()), quirks=False, **(defaults | options))
    module = shared.module("data/citybench/citybench2nq.py")
    found = module.events(stream.removeprefix(PREFIX), settings, *_sources())
    return [(time + 1, "\n".join(triples)) for time, _, triples in found]


@functools.cache
def replayed(stream: str, rows: int) -> list[Event]:
    """Return the first rows of a stream, one each second from 0, as the authors' harness replays them."""
    return _events(stream, time="replay", max_rows=rows)


@functools.cache
def observed(stream: str, start: str, end: str) -> list[Event]:
    """Return the readings between two moments, at their own times. User locations have no time: one comes each second
    from `start`.
    """
    found = _events(stream, time="obtime", start=start, end=end)
    last = int(shared.module("data/citybench/citybench2nq.py").ms(end, "T"))
    return sorted((event for event in found if event[0] <= last + 1), key=lambda event: event[0])


def folded(answer: Answer) -> Answer:
    """Return the answer with xsd:integer in place of xsd:long, as pyoxigraph stores numbers."""
    if not isinstance(answer, Rows):
        return answer
    return Rows(answer.variables, tuple(tuple(map(_folded, row)) for row in answer.rows))


def _folded(term: Term | None) -> Term | None:
    if isinstance(term, ox.Literal) and term.datatype.value == XSD + "long":
        return ox.Literal(term.value, datatype=ox.NamedNode(XSD + "integer"))
    return term


class Expectation:
    """Answers of one text by pyoxigraph, with the FROM graphs and the content of every window in one default graph."""

    def __init__(self, text: Text, events: dict[str, list[Event]]) -> None:
        self.text, self.events = text, events
        self.store = ox.Store()
        for graph in text.header.default_graphs:
            self.store.extend(ox.Quad(t.subject, t.predicate, t.object) for t in _static(graph))
        self._known: dict[Any, Answer] = {}

    def at(self, time: int) -> Answer:
        held = tuple(
            (w.stream, k)
            for w in self.text.header.windows
            for k, (stamp, _) in enumerate(self.events[w.stream])
            if time - time % w.step - (w.range_ms or 0) < stamp <= time - time % w.step
        )
        if held not in self._known:
            self._known[held] = self._answer([self.events[stream][k][1] for stream, k in held])
        return self._known[held]

    def _answer(self, messages: list[str]) -> Answer:
        quads = [ox.Quad(*triple) for message in messages for triple in parse_triples(message)]
        fresh = [quad for quad in quads if quad not in self.store]
        self.store.extend(fresh)
        result = self.store.query(self.text.header.sparql)
        if isinstance(result, ox.QueryBoolean):
            answer: Answer = bool(result)
        else:
            names = [v.value for v in result.variables]
            answer = Rows(tuple(names), tuple(tuple(row[n] for n in names) for row in result))
        for quad in fresh:
            self.store.remove(quad)
        return answer
