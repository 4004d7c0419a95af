"""A brute-force model of docs/semantics.md §1 to §5: it keeps every tuple, and computes every evaluation from all of
them.

`OracleEngine` has the verbs of `penstock.Engine` that change or show meaning. It knows nothing of how Penstock works.
"""

from __future__ import annotations

import datetime
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support import header as headers
from support import updates
from support.answers import Answer, Rows
from support.evaluator import Content, Data, bag_difference
from support.header import STORED, Header, WindowSpec
from support.references import by_pyoxigraph
from support.terms import Triple, parse_patch, parse_triples, parse_update

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Returns the answer for the data of one evaluation and its instant.
Meaning = "Callable[[Data, int], Answer]"


@dataclass(frozen=True)
class Accepted:
    time: int
    arrival: int
    triple: Triple
    removes: bool = False


@dataclass
class StreamModel:
    """A declared (or derived) stream. `watermark` None: no progress yet."""

    iri: str
    batch_ms: int = 100
    lateness_ms: int = 0
    timing: Any = ()
    absorb_into: str | None = None
    max_ahead_ms: int = 86_400_000
    derived: bool = False
    watermark: int | None = None
    tuples: list[Accepted] = field(default_factory=list)
    late: list[tuple[int, str]] = field(default_factory=list)
    logged: float = -math.inf  # the operation log has its tuples up to that time

    @property
    def closed(self) -> float:
        """The end of the last closed batch."""
        return -math.inf if self.watermark is None else self.watermark // self.batch_ms * self.batch_ms

    @property
    def asserted(self) -> list[Accepted]:
        return [a for a in self.tuples if not a.removes]

    def end_of_batch(self, time: int) -> int:
        return -(-time // self.batch_ms) * self.batch_ms

    def absorbs(self, triple: Triple) -> bool:
        return self.timing != "all" and triple[1].value not in self.timing


@dataclass(frozen=True)
class StoredOperation:
    """An entry of the operation log (§1). `stream`, `batch`: whose batch it came with, and that batch's end."""

    adds: bool
    graph: str | None
    triple: Triple
    stream: str | None = None
    batch: float = -math.inf


@dataclass(frozen=True)
class ExpectedEvaluation:
    query: str
    time: int
    windows: dict[str, tuple[int | None, int]]
    answer: Answer


@dataclass
class QueryModel:
    """A registered query. `point` is P; `last` the last instant evaluated; `previous` its answer, for
    ISTREAM/DSTREAM.
    """

    name: str
    header: Header
    meaning: Any
    windows: tuple[WindowSpec, ...]
    point: int | None = None
    last: float = -math.inf
    previous: Answer | None = None
    waiting: list[ExpectedEvaluation] = field(default_factory=list)
    publishes: str | None = None

    @property
    def streams(self) -> set[str]:
        return {w.stream for w in self.windows}

    def poll(self) -> list[ExpectedEvaluation]:
        waiting, self.waiting = self.waiting, []
        return waiting

    # ---- time windows
    def grid_instant_after(self, time: int) -> int:
        return min(self._next_on_grid(w, time) for w in self.windows)

    def _next_on_grid(self, window: WindowSpec, time: int) -> int:
        start = self.header.starting_at
        if start is not None and time < start:
            return start
        origin = start or 0
        return origin + ((time - origin) // window.step + 1) * window.step

    def own_instant(self, window: WindowSpec, time: int) -> int:
        origin = self.header.starting_at or 0
        return origin + (time - origin) // window.step * window.step


class OracleEngine:
    """`wall_clock_ms`: the clock for `max_ahead`, which counts from the later of clock and watermark."""

    def __init__(self, wall_clock_ms: Callable[[], int] | None = None) -> None:
        self.streams: dict[str, StreamModel] = {}
        self.queries: dict[str, QueryModel] = {}
        self._log: list[StoredOperation] = []  # of the stored graph, in the order of commits
        self._arrivals = 0
        self._refused: list[tuple[str, int, str]] = []
        self._clock = wall_clock_ms or (lambda: int(datetime.datetime.now(datetime.UTC).timestamp() * 1000))

    # ---- data
    def load(self, data: str | bytes, graph: str | None = None) -> None:
        self._log_closed()
        self._log += [StoredOperation(True, graph, triple) for triple in parse_triples(data)]

    def update(self, text: str, operations: Sequence[updates.Operation] | None = None) -> None:
        """Execute an update: of data, or of `operations`, whose text it is."""
        if operations is None:
            made = [(True, graph, triple) for graph, triple in parse_update(text)]
        else:
            made = updates.changes(operations, self._stored_at(math.inf, set()))
        self._log_closed()
        self._log += [StoredOperation(*change) for change in made]

    def declare_stream(self, iri: str, **settings: Any) -> None:
        settings.pop("retention_ms", None)
        self.streams[iri] = StreamModel(iri, **settings)

    def push(self, iri: str, data: str, timestamp: int, syntax: str = "nt") -> str:
        """Offer one event: N-Triples, or an RDF Patch. Returns "taken", "late" or "refused"."""
        stream = self.streams[iri]
        mark = stream.watermark
        if timestamp > max(mark if mark is not None else -math.inf, self._clock()) + stream.max_ahead_ms:
            self._refused.append((iri, timestamp, data))
            return "refused"
        if mark is not None and timestamp <= mark:
            stream.late.append((timestamp, data))
            return "late"
        self._give_points(stream, stream.end_of_batch(timestamp) - stream.batch_ms)
        rows = parse_patch(data) if syntax == "rdf-patch" else dict.fromkeys((True, t) for t in parse_triples(data))
        for adds, triple in rows:
            self._accept(stream, timestamp, triple, removes=not adds)
        self._move(stream, timestamp - 1 - stream.lateness_ms)
        return "taken"

    def advance(self, iri: str | None, time: int) -> None:
        """Advance one stream, or all (None). With all, registration points are given before any evaluation fires."""
        for stream in [s for s in self.streams.values() if not s.derived] if iri is None else [self.streams[iri]]:
            self._give_points(stream, time)
            stream.watermark = time if stream.watermark is None else max(stream.watermark, time)
        self._settle()

    def late(self, iri: str) -> list[tuple[int, str]]:
        late, self.streams[iri].late = self.streams[iri].late, []
        return late

    def dead_letters(self) -> list[tuple[str, int, str]]:
        refused, self._refused = self._refused, []
        return refused

    # ---- queries
    def register(self, text: str, name: str | None = None, meaning: Any = None) -> QueryModel:
        """Register a continuous query; `meaning` computes its answers (default: pyoxigraph on the plain text)."""
        header = headers.parse(text)
        name = name or header.name or f"q{len(self.queries)}"
        windows = tuple(self._resolved(w, header) for w in header.windows)
        query = QueryModel(name, header, meaning or _plain_meaning(header), windows)
        closed = [self.streams[s].closed for s in query.streams if self.streams[s].watermark is not None]
        if closed:
            query.point = int(max(closed))
            query.last = query.point
        if header.publishes:
            query.publishes = header.name
            step = min(w.step for w in windows)
            known = self.streams.get(query.publishes, StreamModel(query.publishes, timing="all"))
            known.batch_ms, known.derived, known.lateness_ms = step, True, 0
            self.streams[query.publishes] = known
        self.queries[name] = query
        self._settle()
        return query

    def stop(self, name: str) -> None:
        del self.queries[name]

    def query(self, text: str, meaning: Any = None) -> Answer:
        """Answer a one-shot query over the latest stable snapshot: the whole stored dataset, or the graphs that its
        clauses list.
        """
        header, stored = headers.parse(text), self._stored_at(math.inf, set())
        stored_default = stored.pop(None, set())
        graphs = {g: Content(frozenset(t)) for g, t in stored.items() if g is not None and t}
        default = Content(frozenset(stored_default))
        if header.default_graphs or header.named_graphs:
            graphs[STORED] = default
            parts = [graphs.get(g, Content(frozenset())).triples for g in header.default_graphs]
            default = Content(frozenset().union(*parts))
            graphs = {g: graphs.get(g, Content(frozenset())) for g in header.named_graphs}
        data = Data(default, graphs, tuple(graphs))
        return meaning(data, 0) if meaning else by_pyoxigraph(header.sparql, data)

    # ---- time
    def _accept(self, stream: StreamModel, time: int, triple: Triple, *, removes: bool = False) -> None:
        stream.tuples.append(Accepted(time, self._arrivals, triple, removes))
        self._arrivals += 1

    def _give_points(self, stream: StreamModel, point: int) -> None:
        for query in self.queries.values():
            if query.point is None and stream.iri in query.streams:
                query.point = point
                query.last = point

    def _move(self, stream: StreamModel, mark: int) -> None:
        stream.watermark = mark if stream.watermark is None else max(stream.watermark, mark)
        self._settle()

    def _settle(self) -> None:
        """Fire every evaluation that is due, until none is: derived streams feed further queries."""
        again = True
        while again:
            again = False
            for query in list(self.queries.values()):
                while (time := self._due(query)) is not None:
                    self._fire(query, time)
                    again = True

    def _due(self, query: QueryModel) -> int | None:
        if query.point is None:
            return None
        stable = min(self.streams[s].closed for s in query.streams)
        if query.windows[0].count:
            reports = {r for w in query.windows for r in self._reports(query, w, stable)}
            return min((r for r in reports if r > query.last), default=None)
        time = query.grid_instant_after(int(query.last))
        return time if time <= stable else None

    def _reports(self, query: QueryModel, window: WindowSpec, until: float) -> dict[int, int]:
        """Return the instants at which a count window reports, each with the number of tuples since P at its last
        report.
        """
        ordered = self._counted(query, window, until)
        return {ordered[i - 1].time: i for i in range(window.step, len(ordered) + 1, window.step)}

    def _counted(self, query: QueryModel, window: WindowSpec, until: float) -> list[Accepted]:
        assert query.point is not None
        tuples = [a for a in self.streams[window.stream].asserted if query.point < a.time <= until]
        return sorted(tuples, key=lambda a: (a.time, a.arrival))

    def _resolved(self, window: WindowSpec, header: Header) -> WindowSpec:
        batch = self.streams[window.stream].batch_ms
        changes: dict[str, Any] = {"range_ms": batch, "step": batch} if window.now else {}
        if header.computed_every is not None:
            changes["step"] = header.computed_every
        return WindowSpec(**(window.__dict__ | changes))

    # ---- evaluation
    def _fire(self, query: QueryModel, time: int) -> None:
        contents, bounds = {}, {}
        for window in query.windows:
            contents[window.name], bounds[window.name] = self._content(query, window, time)
        answer = query.meaning(self._dataset(query, contents, time), time)
        reported, query.previous = _as_stream(query.header.r2s, answer, query.previous), answer
        query.last = time
        if not query.header.nonempty or _size(reported):
            query.waiting.append(ExpectedEvaluation(query.name, time, bounds, reported))
        if query.publishes is not None:
            self._publish(query, time, reported)

    def _publish(self, query: QueryModel, time: int, triples: Answer) -> None:
        assert query.publishes is not None
        assert isinstance(triples, frozenset)
        stream = self.streams[query.publishes]
        following = query.grid_instant_after(time) - 1
        self._give_points(stream, stream.end_of_batch(time) - stream.batch_ms if triples else following)
        for triple in triples:
            self._accept(stream, time, triple)
        stream.watermark = following

    def _content(self, query: QueryModel, window: WindowSpec, time: int) -> tuple[set[Triple], tuple[int | None, int]]:
        assert query.point is not None
        if window.count:
            reports = {t: i for t, i in self._reports(query, window, time).items() if t <= time}
            if not reports:
                return set(), (None, time)
            own = max(reports)
            held = self._counted(query, window, time)[max(0, reports[own] - window.count) : reports[own]]
            return {a.triple for a in held}, (held[0].time - 1, own)
        own = query.own_instant(window, time)
        start = None if window.range_ms is None else own - window.range_ms
        oldest = max(query.point, -math.inf if start is None else start)
        tuples = self.streams[window.stream].tuples
        found = {a.triple for a in tuples if oldest < a.time <= own and a.removes == window.removed}
        return found, (start, own)

    def _stored_at(self, time: float, named: set[str]) -> dict[str | None, set[Triple]]:
        self._log_closed()
        bounds = {iri: self.streams[iri].end_of_batch(int(time)) for iri in named}
        stored: dict[str | None, set[Triple]] = defaultdict(set)
        for operation in self._log:
            if operation.batch <= bounds.get(operation.stream or "", math.inf):
                triples = stored[operation.graph]
                triples.add(operation.triple) if operation.adds else triples.discard(operation.triple)
        return stored

    def _log_closed(self) -> None:
        """Log what closed batches have stored and removed since the last time, in the order of times and arrivals. Two
        streams that remove do not absorb into the same graph, so the order of streams does not matter.
        """
        for stream in self.streams.values():
            until, before = stream.closed, stream.logged
            for a in sorted(stream.tuples, key=lambda a: (a.time, a.arrival)) if until > before else ():
                if before < a.time <= until and stream.absorbs(a.triple):
                    batch = stream.end_of_batch(a.time)
                    graph = stream.absorb_into
                    self._log.append(StoredOperation(not a.removes, graph, a.triple, stream.iri, batch))
            stream.logged = max(until, before)

    def _dataset(self, query: QueryModel, contents: dict[str, set[Triple]], time: int) -> Data:
        header, stored = query.header, self._stored_at(time, query.streams)

        def graph(name: str) -> set[Triple]:
            return stored[None] if name == STORED else stored.get(name, set())

        parts: list[set[Triple]] = [contents[w.name] for w in query.windows if w.in_default]
        parts += [graph(name) for name in header.default_graphs]
        default = set().union(*parts) if parts else stored[None]
        graphs = {name: triples for name, triples in stored.items() if name is not None}
        graphs |= {name: graph(name) for name in (STORED, *header.default_graphs, *header.named_graphs)}
        graphs |= contents
        names = [*header.named_graphs, *(w.name for w in query.windows if w.by_graph)]
        return Data(Content(frozenset(default)), {g: Content(frozenset(t)) for g, t in graphs.items()}, tuple(names))


def _plain_meaning(header: Header) -> Any:
    """Answer by pyoxigraph, over only the graphs that the text names or that `GRAPH ?g` ranges over."""
    ordered = bool(re.search(r"\bORDER\s+BY\b", header.sparql, re.IGNORECASE))

    def meaning(data: Data, time: int) -> Answer:
        moment = datetime.datetime.fromtimestamp(time / 1000, datetime.UTC).isoformat().replace("+00:00", "Z")
        text = re.sub(
            r"\bNOW\s*\(\s*\)",
            f'"{moment}"^^<http://www.w3.org/2001/XMLSchema#dateTime>',
            header.sparql,
            flags=re.IGNORECASE,
        )
        graphs = {g: c for g, c in data.graphs.items() if g in data.names or f"<{g}>" in text}
        return by_pyoxigraph(text, Data(data.default, graphs, data.names), ordered=ordered)

    return meaning


def _as_stream(operator: str, answer: Answer, previous: Answer | None) -> Answer:
    if operator == "RSTREAM":
        return answer
    if isinstance(answer, Rows):
        before = previous if isinstance(previous, Rows) else Rows(answer.variables, ())
        return bag_difference(answer, before) if operator == "ISTREAM" else bag_difference(before, answer)
    assert isinstance(answer, frozenset)
    earlier = previous if isinstance(previous, frozenset) else frozenset()
    return answer - earlier if operator == "ISTREAM" else earlier - answer


def _size(answer: Answer) -> int:
    if isinstance(answer, bool):
        return int(answer)
    return len(answer.rows) if isinstance(answer, Rows) else len(answer)
