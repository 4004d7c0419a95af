"""Each evaluation reaches a program once, with its rows, whichever calls consume it: polls of the engine and of queries,
subscribers of both, over stops and restarts.
"""

from __future__ import annotations

import contextlib
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

Answers: TypeAlias = dict[tuple[str, int], list[list[str]]]

WALL = 1_000_000
STREAMS = ("urn:s", "urn:t")
WINDOWED = "REGISTER QUERY {} {} AS SELECT ?o FROM STREAM <urn:{}> [{}] WHERE {{ <urn:{}> <urn:p> ?o }}"
TEXTS = {
    "k0": WINDOWED.format("k0", "", "s", "RANGE 300ms STEP 100ms", "a"),
    "k1": WINDOWED.format("k1", "", "s", "RANGE 300ms STEP 100ms", "b"),
    "k2": WINDOWED.format("k2", "", "s", "RANGE 300ms STEP 100ms", "c"),
    "few0": WINDOWED.format("few0", "REPORT NONEMPTY", "s", "RANGE 100ms STEP 100ms", "a"),
    "few1": WINDOWED.format("few1", "REPORT NONEMPTY", "s", "RANGE 100ms STEP 100ms", "b"),
    "slow": WINDOWED.format("slow", "", "t", "RANGE 200ms STEP 200ms", "a"),
    "counted": "REGISTER QUERY counted AS SELECT ?o FROM STREAM <urn:t> [TRIPLES 3 STEP 2] WHERE { ?s ?p ?o }",
}
NAMES = sorted(TEXTS)

names = st.sampled_from(NAMES)
limits = st.sampled_from([None, None, 1, 2, 5])
operations = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(STREAMS), st.integers(0, 1_500), st.sampled_from("abc")),
    st.tuples(st.just("advance"), st.sampled_from([*STREAMS, None]), st.integers(0, 1_500)),
    st.tuples(st.just("advance"), st.none(), st.integers(0, 1_500)),
    st.tuples(st.just("register"), names),
    st.tuples(st.just("stop"), names),
    st.tuples(st.just("poll"), limits),
    st.tuples(st.just("poll_one"), names, limits),
    st.tuples(st.just("listen"), st.sampled_from([*NAMES, None])),
    st.tuples(st.just("forget"), st.sampled_from([*NAMES, None])),
    st.tuples(st.just("reopen")),
)


class Expected:
    """An engine that never restarts, each of whose queries has a subscriber."""

    def __init__(self) -> None:
        self.engine = penstock.Engine(clock=lambda: WALL)
        self.answers: Answers = {}

    def register(self, name: str) -> None:
        self.engine.register(TEXTS[name]).subscribe(partial(record, self.answers))


class Observed:
    """An engine that restarts, and what the calls that consume evaluations have returned."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.answers: Answers = {}
        self._stopped: list[penstock.Query] = []
        self._ends: dict[str | None, Any] = {}
        self.engine = self._opened()
        self.engine.poll()  # from now on, also the evaluations of stopped queries

    def _opened(self) -> penstock.Engine:
        return penstock.Engine(data_dir=self._folder, clock=lambda: WALL)

    def record(self, evaluation: penstock.Evaluation) -> None:
        record(self.answers, evaluation)

    def poll(self, limit: int | None) -> None:
        evaluations = self.engine.poll(limit)
        assert limit is None or len(evaluations) <= limit
        times = [evaluation.time for evaluation in evaluations]
        assert times == sorted(times)
        for evaluation in evaluations:
            self.record(evaluation)

    def poll_one(self, name: str, limit: int | None) -> None:
        if name in self.engine.queries:
            for evaluation in self.engine.queries[name].poll(limit):
                self.record(evaluation)

    def listen(self, name: str | None) -> None:
        if name not in self._ends and (name is None or name in self.engine.queries):
            source = self.engine if name is None else self.engine.queries[name]
            self._ends[name] = source.subscribe(self.record)

    def forget(self, name: str | None) -> None:
        if (end := self._ends.pop(name, None)) is not None:
            end()

    def stop(self, name: str) -> None:
        self._ends.pop(name, None)
        query = self.engine.queries[name]
        query.stop()
        self._stopped.append(query)

    def reopen(self) -> None:
        for query in self._stopped:  # a checkpoint has no evaluations of stopped queries
            for evaluation in query.poll():
                self.record(evaluation)
        self._stopped.clear()
        self._ends.clear()
        self.engine.close()
        self.engine = self._opened()
        self.engine.poll(0)


def record(answers: Answers, evaluation: penstock.Evaluation) -> None:
    """Append the rows of an evaluation. Count windows may report several times at an instant."""
    assert isinstance(evaluation.answer, penstock.Solutions)
    found = sorted(str(row["o"]) for row in evaluation.answer)
    answers.setdefault((evaluation.query, evaluation.time), []).append(found)


@settings(deadline=None)
@given(st.lists(operations, max_size=40))
def test_each_evaluation_is_delivered_once(given_operations):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as closing:
        expected, observed = Expected(), Observed(Path(folder))
        closing.callback(lambda: (expected.engine.close(), observed.engine.close()))
        for iri in STREAMS:
            for engine in (expected.engine, observed.engine):
                engine.declare_stream(iri, timing="all")
        for number, (verb, *given) in enumerate(given_operations):
            if verb == "push":
                iri, time, who = given
                for engine in (expected.engine, observed.engine):
                    engine.push(iri, f"<urn:{who}> <urn:p> <urn:{number}> .", timestamp=time)
            elif verb == "advance":
                for engine in (expected.engine, observed.engine):
                    engine.advance(*given)
            elif verb == "register":
                if given[0] not in observed.engine.queries:
                    expected.register(given[0])
                    observed.engine.register(TEXTS[given[0]])
            elif verb == "stop":
                if given[0] in observed.engine.queries:
                    expected.engine.queries[given[0]].stop()
                    observed.stop(given[0])
            else:
                getattr(observed, verb)(*given)
        observed.poll(None)
        assert observed.answers == expected.answers
        assert observed.engine._runtime.schedule.unpolled.bytes == 0
