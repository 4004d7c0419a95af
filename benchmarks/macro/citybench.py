"""CityBench over real readings of Aarhus: the time from a window's close to its answer, and the highest sustained rate.

Events are pushed as users push them: N-Triples texts through `push_events`. The measured time ends when the answer is
polled (columns of ids); separate rows give the time until every term is an rdflib object. Answers are compared with
pyoxigraph over the same windows (tests/support/citybench.py). The peer in the same run is pyoxigraph's time for one
window whose content is already loaded. The figures of C-SPARQL and CQELS were measured earlier, on this kind of
machine.
"""

from __future__ import annotations

import statistics
import sys
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import pyoxigraph

import penstock
from benchmarks.harness import ROOT, Row, Spent, check, need, spent
from penstock.engine.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks citybench"
NOTED_MS = {"Q1": ("CQELS", 29), "Q2": ("C-SPARQL", 350), "Q3": ("CQELS", 29), "Q5": ("CQELS", 18), "Q10": ("CQELS", 4)}
SECONDS = 60
CHECKED_SECONDS = 12
TARGET_MS, TARGET_RATE, TARGET_RATE_OF_CHANGES = 1.0, 100_000.0, 1_000_000.0
_SECOND = 1000
_STEADY = 3  # seconds until windows are full
_MOST_RATE = 3_900  # events a second and stream: there are 15,625 readings


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield rows for the latency at one event a second and stream, and for the rate on Q1."""
    need("data/citybench")
    if str(ROOT / "tests") not in sys.path:
        sys.path.append(str(ROOT / "tests"))
    from support import citybench  # noqa: PLC0415 - needs the path above

    texts = {text.name: text for text in citybench.texts()}
    for name in NOTED_MS:
        yield from _latency(citybench, texts[name], 5 if tiny else SECONDS, 4 if tiny else CHECKED_SECONDS)
    yield from _replay(citybench, texts["Q1"], 10 if tiny else 600)
    for read in ("answers", "columns", "changes"):
        yield _rate(citybench, texts["Q1"], most=8 if tiny else _MOST_RATE, read=read)


# ---- latency
def _latency(citybench: Any, text: Any, seconds: int, checked: int) -> Iterator[Row]:
    """Measure from the call that closes the last window to the polled answer, at one event a second and stream."""
    from support.answers import difference, from_api  # noqa: PLC0415 - see run

    events = {stream: citybench.replayed(stream, seconds + 1) for stream in text.streams}
    expectation = citybench.Expectation(text, events)
    closes, decodes, rows = [], [], []
    with _open(citybench, text) as engine:
        query = engine.register(text.text)
        _begin(engine, text)
        for low in range(0, seconds * _SECOND, _SECOND):
            until = low + _SECOND
            _push(engine, events, low)
            for stream in text.streams[:-1]:
                engine.advance(stream, until)
            answers: list[Any] = []
            closes.append(spent(lambda: answers.extend(_close(engine, query, text.streams[-1], until))))  # noqa: B023
            assert len(answers) == 1
            decodes.append(spent(lambda: list(answers[0])))  # noqa: B023
            rows.append(len(answers[0]))
            if until <= checked * _SECOND:
                differs = difference(expectation.at(until), citybench.folded(from_api(answers[0])))
                check(differs, None, f"CityBench {text.name} at {until}")
    closed, decoded = _medians(closes[_STEADY:]), _medians(decodes[_STEADY:])
    noted, noted_ms = NOTED_MS[text.name]
    name = (
        f"CityBench {text.name} at 1 event/s/stream, p50: window close to answer ({statistics.median(rows):.0f} rows)"
    )
    yield Row(
        name, closed.wall, "ms", COMMAND, f"{noted} (noted)", noted_ms, TARGET_MS, clock="wall", other_clock=closed.cpu
    )
    yield Row(
        "- with every row decoded to rdflib terms, against one window in pyoxigraph",
        closed.wall + decoded.wall,
        "ms",
        COMMAND,
        "pyoxigraph",
        _peer(expectation, text, seconds),
        clock="wall",
        other_clock=closed.cpu + decoded.cpu,
    )


def _medians(times: list[Spent]) -> Spent:
    """Return medians in ms."""
    return Spent(statistics.median(t.wall for t in times) / 1000, statistics.median(t.cpu for t in times) / 1000)


def _close(engine: penstock.Engine, query: penstock.Query, stream: str, until: int) -> list[Any]:
    """Close the last stream's second, and return the answers that fire. Their rows are not decoded yet."""
    engine.advance(stream, until)
    return [evaluation.answer for evaluation in query.poll()]


def _peer(expectation: Any, text: Any, seconds: int) -> float:
    """Return the median ms of pyoxigraph's query over a window and the stored graph, both already loaded."""
    from support.terms import parse_triples  # noqa: PLC0415 - see run

    store, times = expectation.store, []
    for end in range(_STEADY * _SECOND, min(seconds, 20) * _SECOND + 1, _SECOND):
        held = [
            message
            for window in text.header.windows
            for time, message in expectation.events[window.stream]
            if end - window.range_ms < time <= end
        ]
        quads = [pyoxigraph.Quad(*triple) for message in held for triple in parse_triples(message)]
        fresh = [quad for quad in quads if quad not in store]
        store.extend(fresh)
        times.append(spent(lambda: [tuple(row) for row in store.query(text.header.sparql)]).wall / 1000)
        for quad in fresh:
            store.remove(quad)
    return statistics.median(times)


# ---- rates
def _replay(citybench: Any, text: Any, seconds: int) -> Iterator[Row]:
    """Play recorded readings as fast as possible, with one event in each second of event time."""
    events = {stream: citybench.replayed(stream, seconds) for stream in text.streams}
    triples = sum(message.count("\n") + 1 for chosen in events.values() for _, message in chosen)
    rows: list[int] = []
    with _open(citybench, text) as engine:
        query = engine.register(text.text)
        _begin(engine, text)

        def play() -> None:
            for low in range(0, seconds * _SECOND, _SECOND):
                _push(engine, events, low)
                for stream in text.streams[:-1]:
                    engine.advance(stream, low + _SECOND)
                rows.extend(map(len, _close(engine, query, text.streams[-1], low + _SECOND)))

        took = spent(play)
    expected = [_held(events, end) for end in range(_SECOND, seconds * _SECOND + 1, _SECOND)]
    check(rows, expected, f"{text.name} replayed, rows by window")
    yield Row(
        f"CityBench {text.name} replayed: 1 event/s/stream of event time, push_events, an answer each second of it",
        triples / took.cpu * 1e6,
        "triples/s",
        COMMAND,
        lower_is_better=False,
        clock="cpu",
        other_clock=triples / took.wall * 1e6,
    )


def _rate(citybench: Any, text: Any, most: int, *, read: str) -> Row:
    """Measure the highest rate at which the work for one second of the stream takes at most a second.

    Windows grow with the rate, as they did for the peers. The answer of Q1 pairs every reading of one street with every
    reading of the other, so its rows grow with the square of the rate. It is stored as the readings of the two streets.
    `read`: "answers", "columns" (each answer is expanded to columns of ids) or "changes" (the query has the option
    `changes`, and the added and removed rows of each evaluation are columns of ids).
    """
    sustained, failed, results = 1, most, {}
    while failed > sustained * 1.1:
        rate = min(sustained * 2, failed - 1) if failed == most else round((sustained * failed) ** 0.5)
        results[rate] = _busy(citybench, text, rate, read=read)
        if results[rate].cpu <= 1e6:
            sustained = rate
        else:
            failed = rate
        if sustained >= most - 1:
            break
    per_event = citybench.replayed(text.streams[0], 1)[0][1].count("\n") + 1
    rows = f"{(3 * sustained) ** 2:,} rows a second"
    names = {
        "answers": f"CityBench {text.name}: highest sustained rate, push_events ({rows})",
        "columns": f"- with whole columns made of every answer ({rows})",
        "changes": f"- with `changes`: added and removed rows as columns ({rows})",
    }
    return Row(
        names[read],
        float(sustained * per_event * len(text.streams)),
        "triples/s",
        COMMAND,
        "C-SPARQL (noted)",
        1140.0,
        {"answers": TARGET_RATE, "columns": None, "changes": TARGET_RATE_OF_CHANGES}[read],
        lower_is_better=False,
        clock="cpu",
    )


def _busy(citybench: Any, text: Any, rate: int, *, read: str) -> Spent:
    """Measure pushing, closing and polling one second of streams, `rate` events in each, when windows are full."""
    seconds = _STEADY + 1
    events = {
        stream: [(i * _SECOND // rate + 1, message) for i, (_, message) in enumerate(chosen)]
        for stream, chosen in ((s, _endless(citybench, s, rate * seconds)) for s in text.streams)
    }
    took: list[Spent] = []
    with _open(citybench, text) as engine:
        query = engine.register(text.text, changes=read == "changes")
        _begin(engine, text)
        for low in range(0, seconds * _SECOND, _SECOND):

            def second(low: int = low) -> None:
                _push(engine, events, low)
                for stream in text.streams:
                    engine.advance(stream, low + _SECOND)
                rows = [_rows_read(evaluation, read) for evaluation in query.poll()]
                before = _held(events, low) if read == "changes" else 0
                check(rows, [_held(events, low + _SECOND) - before], f"{text.name} at {rate} events a second")

            took.append(spent(second))
    return took[-1]


def _rows_read(evaluation: Any, read: str) -> int:
    """Return the number of rows of an evaluation; with "changes", the number by which the answer has grown."""
    match read:
        case "answers":
            return len(evaluation.answer)
        case "columns":
            return len(evaluation.answer.columns[0])
        case _:
            return len(evaluation.added.columns[0]) - len(evaluation.removed.columns[0])


def _endless(citybench: Any, stream: str, count: int) -> list[Any]:
    events: list[Any] = citybench.replayed(stream, count)
    assert len(events) == count, f"{stream} has only {len(events)} readings"
    return events


def _held(events: dict[str, list[tuple[int, str]]], end: int) -> int:
    """Return the number of Q1's rows at an instant: pairs of readings of the two streets."""
    held = 1
    for chosen in events.values():
        held *= sum(end - 3 * _SECOND < time <= end for time, _ in chosen)
    return held


# ---- both
def _open(citybench: Any, text: Any) -> penstock.Engine:
    limits = Limits(evaluation_memory_mb=16_384, evaluation_timeout_s=60.0)
    engine = penstock.Engine(limits=limits)
    for graph in text.header.default_graphs:
        engine.load(citybench.static_file(graph), graph=graph, format="turtle")
    for stream in text.streams:
        engine.declare_stream(stream, timing="all")
    return engine


def _begin(engine: penstock.Engine, text: Any) -> None:
    for stream in text.streams:
        engine.advance(stream, 0)


def _push(engine: penstock.Engine, events: dict[str, list[tuple[int, str]]], low: int) -> None:
    """Push one second of every stream."""
    for stream, chosen in events.items():
        first = bisect_right(chosen, low, key=_time)
        engine.push_events(stream, chosen[first : bisect_right(chosen, low + _SECOND, key=_time)])


def _time(event: tuple[int, str]) -> int:
    return event[0]
