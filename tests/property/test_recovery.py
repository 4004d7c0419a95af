"""An engine with a write-ahead log that ends at any moment comes back as if it had not: whatever was done before."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

WALL = 1_000_000
STREAMS = ("urn:s", "urn:t")
TEXTS = {
    "window": "REGISTER QUERY window AS SELECT ?o FROM STREAM <urn:s> [RANGE 300ms STEP 100ms] WHERE { ?s ?p ?o }",
    "joined": "REGISTER ISTREAM joined AS SELECT ?o FROM STREAM <urn:s> [RANGE 200ms STEP 100ms]"
    " FROM STREAM <urn:t> [RANGE 500ms STEP 100ms] WHERE { ?s ?p ?o }",
    "counted": "REGISTER QUERY counted AS SELECT ?o FROM STREAM <urn:t> [TRIPLES 3 STEP 2] WHERE { ?s ?p ?o }",
    "stored": "REGISTER QUERY stored AS SELECT ?o FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
    " FROM <urn:x-penstock:stored> WHERE { ?s <urn:u> ?o }",
    "maker": "REGISTER STREAM <urn:d> AS CONSTRUCT { ?s <urn:q> ?o } FROM STREAM <urn:s> [RANGE 100ms STEP 100ms]"
    " WHERE { ?s <urn:p> ?o }",
}

CHANGES = (
    "DELETE DATA {{ <urn:x> <urn:u> {0} . <urn:y> <urn:u> {0} }}",
    "DELETE {{ ?s <urn:u> ?o }} INSERT {{ ?s <urn:u> {0} }} WHERE {{ ?s <urn:u> ?o FILTER(?o > {0}) }}",
    "DELETE WHERE {{ <urn:y> <urn:u> ?o }} ; INSERT DATA {{ <urn:y> <urn:u> {0} }}",
    "MOVE SILENT DEFAULT TO <urn:g> ; INSERT DATA {{ <urn:y> <urn:u> {0} }}",
    "ADD SILENT <urn:g> TO DEFAULT ; CLEAR GRAPH <urn:g>",
    "INSERT {{ [] <urn:u> ?n }} WHERE {{ SELECT (COUNT(*) AS ?n) {{ ?s <urn:u> ?o }} }} ; DELETE WHERE {{ <urn:x> <urn:u> {0} }}",
)

streams = st.sampled_from(STREAMS)
times = st.integers(0, 900)
events = st.lists(st.tuples(times, st.sampled_from(["good", "good", "timed", "bad", "far"])), min_size=1, max_size=4)
patches = st.lists(st.tuples(times, st.lists(st.integers(0, 9), max_size=4)), min_size=1, max_size=3)
operations = st.one_of(
    st.tuples(st.just("push"), streams, events),
    st.tuples(st.just("push"), streams, events),
    st.tuples(st.just("patch"), streams, patches),
    st.tuples(st.just("advance"), st.sampled_from([*STREAMS, None]), times, st.booleans()),
    st.tuples(st.just("register"), st.sampled_from(sorted(TEXTS))),
    st.tuples(st.just("stop"), st.sampled_from(sorted(TEXTS))),
    st.tuples(st.just("update"), st.integers(0, 5)),
    st.tuples(st.just("change"), st.integers(0, 5), st.sampled_from(CHANGES)),
    st.tuples(st.just("load"), st.integers(0, 5)),
    st.tuples(st.just("checkpoint")),
    st.tuples(st.just("poll")),
    st.tuples(st.just("crash")),
)


class System:
    """An engine, and what its queries have answered so far. `durable`: it comes back from its directory at a crash."""

    def __init__(self, folder: Path, *, durable: bool) -> None:
        self._folder, self._durable, self._copies, self._events = folder, durable, 0, 0
        self.answers: dict[tuple[str, int], Any] = {}
        self._engine = self._opened()
        for iri in STREAMS:
            self._engine.declare_stream(iri, lateness_ms=50, timing=["urn:q"], max_ahead_ms=1 << 40)

    def _opened(self) -> penstock.Engine:
        if not self._durable:
            return penstock.Engine(clock=lambda: WALL)
        return penstock.Engine(data_dir=self._folder / str(self._copies), durability="commit", clock=lambda: WALL)

    def do(self, name: str, *arguments: Any) -> None:
        with contextlib.suppress(penstock.QueryError, penstock.DataError):
            getattr(self, f"_{name}")(*arguments)

    def _push(self, iri: str, given_events: list[tuple[int, str]]) -> None:
        chunk = []
        for time, kind in given_events:
            self._events += 1
            label = "urn:q" if kind == "timed" else "urn:p"
            data = "no triple" if kind == "bad" else f"<urn:a> <{label}> <urn:{self._events}> ."
            chunk.append(((1 << 50) if kind == "far" else time, data))
        self._engine.push_events(iri, chunk)

    def _patch(self, iri: str, given_events: list[tuple[int, list[int]]]) -> None:
        """Push patches: even numbers add a triple, odd ones remove it; 9 removes one of a timing predicate."""
        chunk = []
        for time, numbers in given_events:
            rows = [f"{'AD'[n % 2]} <urn:a> <urn:{'q' if n == 9 else 'p'}> <urn:n{n // 2}> .\n" for n in numbers]
            chunk.append((time, "".join(rows)))
        self._engine.push_events(iri, chunk, "rdf-patch")

    def _advance(self, iri: str | None, time: int, skip: bool) -> None:
        self._engine.advance(iri, time, skip)

    def _register(self, name: str) -> None:
        self._engine.register(TEXTS[name])

    def _stop(self, name: str) -> None:
        self._poll()
        if name in self._engine.queries:
            self._engine.queries[name].stop()

    def _update(self, number: int) -> None:
        self._engine.update(f"INSERT DATA {{ <urn:x> <urn:u> {number} }}")

    def _change(self, number: int, text: str) -> None:
        self._engine.update(text.format(number))

    def _load(self, number: int) -> None:
        self._engine.load(f"<urn:y> <urn:u> {number} .".encode(), format="turtle")

    def _checkpoint(self) -> None:
        if self._durable:
            self._engine.checkpoint()

    def _poll(self) -> None:
        for name, query in self._engine.queries.items():
            for evaluation in query.poll():
                answer = evaluation.answer
                rows = sorted(str(row) for row in answer)
                assert self.answers.setdefault((name, evaluation.time), rows) == rows, "a repeated answer differs"

    def _crash(self) -> None:
        if not self._durable:
            return
        before, self._copies = self._folder / str(self._copies), self._copies + 1
        shutil.copytree(before, self._folder / str(self._copies))
        self._engine.close()
        self._engine = self._opened()

    def end(self) -> dict[str, Any]:
        """Return what can be seen of it."""
        self._engine.advance(None, 5_000)
        self._poll()
        names = ("watermark", "closed", "events", "tuples", "late", "stored_tuples", "push_again")
        stats = self._engine.stats()
        seen = {
            "streams": {iri: [found[name] for name in names] for iri, found in stats["streams"].items()},
            "queries": {n: (q["registration_point"], q["last"], q["gaps"]) for n, q in stats["queries"].items()},
            "dead": len(self._engine.dead_letters()),
            "late": [(e.timestamp, e.watermark) for iri in STREAMS for e in self._engine.late(iri)],
            "stored": sorted(map(str, self._engine.query("SELECT ?p ?o { ?s ?p ?o }"))),
            "named": sorted(map(str, self._engine.query("SELECT ?g ?p ?o { GRAPH ?g { ?s ?p ?o } }"))),
        }
        self._engine.close()
        return seen


@settings(max_examples=60, deadline=None)
@given(st.lists(operations, min_size=1, max_size=30))
def test_a_crash_at_any_moment_changes_nothing_that_can_be_seen(script: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-recovery-") as folder:
        durable, reference = System(Path(folder), durable=True), System(Path(folder), durable=False)
        for operation in [*script, ("crash",)]:
            durable.do(*operation)
            reference.do(*operation)
        assert durable.end() == reference.end()
        assert durable.answers == reference.answers
