"""A query registered late with FROM BEGINNING or STARTING AT answers like one that was registered before the first
event, whatever happened in between (docs/semantics.md §3).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import penstock
import penstock.engine.engine as engine_module

WALL = 1_000_000
LONG = 100_000  # a retention that keeps everything here
STREAMS = ("urn:s", "urn:t")
STORED = "FROM <urn:x-penstock:stored>"
TEXTS = {
    "window": "QUERY window {} AS SELECT ?s (COUNT(?o) AS ?n) FROM STREAM <urn:s> [RANGE 300ms STEP 100ms]"
    " WHERE {{ ?s ?p ?o }} GROUP BY ?s",
    "joined": "ISTREAM joined {} AS SELECT ?o FROM STREAM <urn:s> [RANGE 250ms STEP 50ms]"
    " FROM STREAM <urn:t> [RANGE 500ms STEP 100ms] WHERE {{ ?s ?p ?o }}",
    "counted": "QUERY counted {} AS SELECT ?o FROM STREAM <urn:t> [TRIPLES 3 STEP 2] WHERE {{ ?s ?p ?o }}",
    "counted_stored": f"QUERY counted_stored {{}} AS SELECT ?o FROM STREAM <urn:s> [TRIPLES 2 STEP 1] {STORED}"
    " WHERE {{ ?s <urn:u> ?o }}",
    "stored": f"DSTREAM stored {{}} AS SELECT ?s ?o FROM STREAM <urn:s> [RANGE 100ms STEP 100ms] {STORED}"
    " WHERE {{ ?s <urn:u> ?o }}",
    "absorbed": f"QUERY absorbed {{}} AS SELECT ?s ?o ?x FROM NAMED STREAM <urn:t> [RANGE 200ms STEP 100ms] {STORED}"
    " WHERE {{ ?s <urn:p> ?o . OPTIONAL {{ GRAPH <urn:t> {{ ?x <urn:q> ?o }} }} }}",
    "both": f"QUERY both {{}} AS SELECT ?s ?o FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
    f" FROM STREAM <urn:t> [RANGE 300ms STEP 100ms] {STORED} WHERE {{{{ ?s <urn:p> ?o }}}}",
    "all": "QUERY all_of {} AS ASK FROM STREAM <urn:t> [ALL STEP 100ms] WHERE {{ ?s <urn:p> <urn:o3> }}",
    "maker": "STREAM <urn:d> {} AS CONSTRUCT {{ ?s <urn:q> ?o }} FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
    " WHERE {{ ?s <urn:p> ?o }}",
}
READS = {name: tuple(iri for iri in STREAMS if f"STREAM <{iri}>" in text) for name, text in TEXTS.items()}
CHANGES = (
    "INSERT DATA {{ <urn:x> <urn:u> {0} }}",
    "DELETE DATA {{ <urn:x> <urn:u> {0} . <urn:a> <urn:p> <urn:o{0}> }}",
    "DELETE WHERE {{ ?s <urn:p> <urn:o{0}> }}",
    "DELETE {{ ?s <urn:u> ?o }} INSERT {{ ?s <urn:u> {0} }} WHERE {{ ?s <urn:u> ?o FILTER(?o > {0}) }}",
)

streams = st.sampled_from(STREAMS)
times = st.integers(0, 1500)
numbers = st.integers(0, 5)
kinds = st.sampled_from(["p", "p", "q", "A", "D"])
events = st.lists(st.tuples(times, kinds, numbers), min_size=1, max_size=5)
inputs = st.one_of(
    st.tuples(st.just("push"), streams, events),
    st.tuples(st.just("push"), streams, events),
    st.tuples(st.just("advance"), st.sampled_from([*STREAMS, None, None]), times),
    st.tuples(st.just("change"), st.sampled_from(CHANGES), numbers),
)
late = st.one_of(
    st.tuples(st.just("register"), st.sampled_from(sorted(TEXTS))),
    st.tuples(st.just("poll"), st.integers(1, 4)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("checkpoint")),
)
# for each query, the instant of its STARTING AT; None: FROM BEGINNING
starts = st.fixed_dictionaries(
    {name: st.none() if name.startswith("counted") else st.one_of(st.none(), st.integers(-50, 800)) for name in TEXTS}
)
retentions = st.tuples(*[st.sampled_from([0, 250, 600, LONG, LONG]) for _ in STREAMS])


class System:
    """An engine and the answers of its queries by time. `folder`: it comes back from there after an end."""

    def __init__(self, retention: tuple[int, ...], start: dict[str, int | None], folder: Path | None = None) -> None:
        self._start, self._folder, self._copies = start, folder, 0
        self.answers: dict[str, dict[int, Any]] = {}
        self.past: dict[str, bool] = {}  # the queries that began in the past: whether all of it was retained
        self.engine = self._opened()
        for iri, retention_ms in zip(STREAMS, retention, strict=True):
            self.engine.declare_stream(iri, lateness_ms=30, timing=["urn:q"], retention_ms=retention_ms)

    def _opened(self) -> penstock.Engine:
        if self._folder is None:
            return penstock.Engine(clock=lambda: WALL)
        return penstock.Engine(self._folder / str(self._copies), durability="commit", clock=lambda: WALL)

    def do(self, name: str, *arguments: Any) -> None:
        getattr(self, f"_{name}")(*arguments)

    def _push(self, iri: str, given_events: list[tuple[int, str, int]]) -> None:
        for time, kind, number in given_events:
            if kind in "pq":
                self.engine.push(iri, f"<urn:a> <urn:{kind}> <urn:o{number}> .", time)
            else:
                self.engine.push(iri, f"{kind} <urn:a> <urn:p> <urn:o{number}> .\n", time, "rdf-patch")

    def _advance(self, iri: str | None, time: int) -> None:
        self.engine.advance(iri, time)

    def _change(self, text: str, number: int) -> None:
        self.engine.update(text.format(number))

    def register(self, name: str) -> None:
        """Register a query, unless it is registered already. An engine without `folder` registers it at the start."""
        if name in self.answers:
            return
        start = self._start[name]
        clause = f"STARTING AT {start}" if start is not None else "FROM BEGINNING" if self._folder else ""
        retained = all(self.engine.streams[iri].retention_ms == LONG for iri in READS[name])
        with contextlib.suppress(penstock.QueryError):
            self.engine.register(f"REGISTER {TEXTS[name].format(clause)}", name)
            self.answers[name] = {}
            if self.engine._runtime.registry.members[name].group.incarnation:
                self.past[name] = retained

    _register = register

    def _poll(self, limit: int | None) -> None:
        for name, query in self.engine.queries.items():
            for evaluation in query.poll(limit):
                answer = evaluation.answer
                found = answer if isinstance(answer, bool) else sorted(map(str, answer))
                seen = found, evaluation.windows
                assert self.answers[name].setdefault(evaluation.time, seen) == seen, "a repeated answer differs"

    def _checkpoint(self) -> None:
        self.engine.checkpoint()

    def _restart(self) -> None:
        self.engine.close()
        self.engine = self._opened()

    def _crash(self) -> None:
        assert self._folder is not None
        before, self._copies = self._folder / str(self._copies), self._copies + 1
        shutil.copytree(before, self._folder / str(self._copies))
        self.engine.close()
        self.engine = self._opened()

    def end(self) -> None:
        """Let everything become due, and take the answers."""
        self.engine.advance(None, 4_000)
        self._poll(None)
        self.engine.close()


@settings(max_examples=200, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # shrinking would take too long
@given(retentions, starts, st.lists(st.one_of(inputs, inputs, inputs, late), min_size=4, max_size=40))
def test_a_query_registered_late_answers_like_one_registered_at_the_start(retention, start, steps):
    with tempfile.TemporaryDirectory() as folder, patch.object(engine_module, "_CATCH_UP_S", 0):
        early, system = System(retention, start), System(retention, start, Path(folder))
        for name in TEXTS:
            early.register(name)
        for step in steps:
            system.do(*step)
            if step[0] in ("push", "advance", "change"):
                early.do(*step)
        early.end()
        system.end()
    for name, whole in system.past.items():
        check(name, system.answers[name], early.answers[name], whole=whole)


def check(name: str, found: dict[int, Any], expected: dict[int, Any], *, whole: bool) -> None:
    """Compare the answers of a query in the past with those of a query that was there from the start. `whole`: all of
    the past was retained.
    """
    if not found:
        assert not expected, name  # count windows without a report
        return
    first = min(found)
    if whole:
        assert first == min(expected), name
    assert sorted(found) == [time for time in sorted(expected) if time >= first], name
    changes = TEXTS[name].startswith(("ISTREAM", "DSTREAM"))  # the first answer is relative to the empty one
    # Whether an evaluation sees what a batch of another stream has absorbed, if the instant is inside of the batch,
    # depends on the instants of the other queries: they may have closed the batch.
    open_ = STORED in TEXTS[name] and set(READS[name]) != set(STREAMS)
    for time in sorted(found):
        if open_ and time % 100:
            continue
        if whole or not (changes and time == first):
            assert found[time] == expected[time], (name, time)
