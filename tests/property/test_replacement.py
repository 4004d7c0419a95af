"""A standing query that is replaced under its name, whatever happens in between: each instant is answered once and in
order, by the text that stands, and like by a query with this text that was there from the start (docs/semantics.md §3).
"""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.property.test_history import STORED, System, inputs, retentions

from penstock.event_time.grid import Grid

if TYPE_CHECKING:
    import penstock

# by name, which is the variable of the answer: the steps, the operator and the rest of the text
TEXTS = {
    "plain": ((100,), "QUERY", "FROM STREAM <urn:s> [RANGE 300ms STEP 100ms] WHERE { ?s ?p ?plain }"),
    "finer": ((50,), "QUERY", "FROM STREAM <urn:s> [RANGE 200ms STEP 50ms] WHERE { ?s ?p ?finer }"),
    "hopping": ((150,), "QUERY", "FROM STREAM <urn:t> [RANGE 40ms STEP 150ms] WHERE { ?s ?p ?hopping }"),
    "joined": (
        (50, 100),
        "ISTREAM",
        (
            "FROM STREAM <urn:s> [RANGE 250ms STEP 50ms] FROM STREAM <urn:t> [RANGE 500ms STEP 100ms]"
            " WHERE { ?s ?p ?joined }"
        ),
    ),
    "stored": (
        (100,),
        "DSTREAM",
        f"FROM STREAM <urn:s> [RANGE 100ms STEP 100ms] {STORED} WHERE {{ ?s <urn:u> ?stored }}",
    ),
    "both": (
        (100,),
        "QUERY",
        (
            "FROM NAMED STREAM <urn:s> [RANGE 100ms STEP 100ms] FROM NAMED STREAM <urn:t> [RANGE 300ms STEP 100ms]"
            f" {STORED} WHERE {{ ?s <urn:p> ?both }}"
        ),
    ),
    "everything": ((100,), "QUERY", "FROM STREAM <urn:t> [ALL STEP 100ms] WHERE { ?s <urn:p> ?everything }"),
    "counted": ((), "QUERY", "FROM STREAM <urn:t> [TRIPLES 3 STEP 2] WHERE { ?s ?p ?counted }"),
}
GRIDS = {name: Grid(0, steps) for name, (steps, _, _) in TEXTS.items() if steps}

steps = st.one_of(
    st.tuples(st.just("replace"), st.sampled_from(sorted(TEXTS))),
    st.tuples(st.just("poll"), st.integers(1, 4)),
    st.tuples(st.just("restart")),
    st.tuples(st.just("crash")),
    st.tuples(st.just("checkpoint")),
)


def text(name: str) -> str:
    return f"REGISTER {TEXTS[name][1]} {name} AS SELECT ?{name} {TEXTS[name][2]}"


class Replaced(System):
    """A system with one query, which is replaced. `tenures`: per text, its name, its registration point, the last
    instant that was due at its registration, and the number of gaps so far.
    """

    def __init__(self, retention: tuple[int, ...], folder: Path) -> None:
        super().__init__(retention, {}, folder)
        self.tenures: list[tuple[str, int | None, int | None]] = []
        self.gaps: list[penstock.Gap] = []
        self.answers["q"] = {}

    def _replace(self, name: str) -> None:
        if name == "everything" and not self.engine.streams["urn:t"].retention_ms:
            return
        query = self.engine.register(text(name), name="q", replace=True)
        if not self.tenures or self.tenures[-1][0] != name:
            self.tenures.append((name, query.registration_point, query.status().last))

    def _poll(self, limit: int | None) -> None:
        for query in self.engine.queries.values():
            latest = max(self.answers["q"], default=None)
            times = []
            for evaluation in query.poll(limit):
                times.append(evaluation.time)
                found = evaluation.answer.variables[0], sorted(map(str, evaluation.answer)), evaluation.windows
                assert self.answers["q"].setdefault(evaluation.time, found) == found, "a repeated answer differs"
            assert all(a < b for a, b in pairwise(times))
            assert not times or latest is None or max(times) > latest or set(times) <= self.answers["q"].keys()
            self.gaps = query.gaps


@settings(max_examples=150, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # shrinking would take too long
@given(retentions, st.lists(st.one_of(inputs, inputs, inputs, steps), min_size=4, max_size=40))
def test_each_instant_is_answered_once_by_the_text_that_stands(retention, given_steps):
    with tempfile.TemporaryDirectory() as folder:
        early, system = System(retention, {}), Replaced(retention, Path(folder))
        for name in TEXTS:
            if name != "everything" or retention[1]:  # [ALL] needs a retention
                early.engine.register(text(name))
                early.answers[name] = {}
        for step in given_steps:
            system.do(*step)
            if step[0] in ("push", "advance", "change"):
                early.do(*step)
        early.end()
        system.end()
    check_instants(system)
    check_answers(system, early.answers)


def check_instants(system: Replaced) -> None:
    """Check that no instant is left out, except those of the gaps."""
    times = sorted(system.answers["q"])
    runs: list[tuple[str, list[int]]] = []
    for time in times:
        name = system.answers["q"][time][0]
        if not runs or runs[-1][0] != name:
            runs.append((name, []))
        runs[-1][1].append(time)
    order = iter(name for name, *_ in system.tenures)
    assert all(name in order for name, _ in runs), "texts answer in the order of their registration"
    for name, run in runs:
        if name in GRIDS:
            assert all(GRIDS[name].next_after(a) == b for a, b in pairwise(run))
    for (before, earlier), (after, later) in pairwise(runs):
        if before not in GRIDS or after not in GRIDS:
            continue
        following = GRIDS[before].next_after(earlier[-1])  # the handover is before this instant
        gap = next((g for g in system.gaps if GRIDS[after].next_after(g.until) == later[0]), None)
        instants = GRIDS[after].count(following - 1, later[0] - 1)
        assert instants <= (0 if gap is None else gap.count), (before, earlier[-1], after, later[0])


def check_answers(system: Replaced, expected: dict[str, dict[int, Any]]) -> None:
    """Compare the answers of each text with those of a query that was there from the start, where its registration
    point cuts no window.
    """
    tenures = list(system.tenures)
    fresh = True
    for time in sorted(system.answers["q"]):
        name, rows, windows = system.answers["q"][time]
        while tenures[0][0] != name:
            del tenures[0]
            fresh = True
        _, point, due = tenures[0]
        first, fresh = fresh, False
        if point is None or name not in GRIDS or any(start is None or start < point for start, _ in windows.values()):
            continue
        if first and TEXTS[name][1] != "QUERY":
            continue  # relative to the empty answer
        if name in ("stored", "both") and due is not None and time <= due:
            continue  # it became due later than in the other engine
        if time < min(expected[name], default=time + 1):
            continue  # the streams of the text have no progress yet, which sets the other engine's registration point
        assert (rows, windows) == expected[name][time], (name, time)
