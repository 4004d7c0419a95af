"""A producer that follows `push_again` after each restart: nothing is lost, nothing arrives twice, whatever
is refused.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock

STREAM = "urn:s"
FAR = 1 << 58
COUNTED = "REGISTER QUERY q AS SELECT ?o FROM STREAM <urn:s> [TRIPLES 4 STEP 1] WHERE { ?s <urn:p> ?o }"

times = st.integers(1, 400)
events = st.lists(st.tuples(times, st.sampled_from(["good", "good", "good", "bad", "far"])), min_size=1, max_size=25)


def _event(number: int, time: int, kind: str) -> tuple[int, str]:
    if kind == "far":
        return FAR + number, f"<urn:a> <urn:p> <urn:{number}> ."
    return time, "no triple" if kind == "bad" else f"<urn:a> <urn:p> <urn:{number}> ."


def _opened(folder: Path) -> penstock.Engine:
    return penstock.Engine(data_dir=folder, clock=lambda: 0)


def _answers(engine: penstock.Engine) -> dict[int, list[str]]:
    found = engine.queries["q"].poll()
    return {e.time: sorted(str(row["o"]) for row in e.answer) for e in found}


def _run(pushed: list[tuple[int, str]], restart_at: int | None) -> dict[int, list[str]]:
    """Push all events; `restart_at` is the event before which the engine restarts."""
    seen: dict[int, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="penstock-again-") as folder:
        engine = _opened(Path(folder))
        engine.declare_stream(STREAM, batch_ms=10, lateness_ms=50, timing="all", max_ahead_ms=1 << 40)
        engine.register(COUNTED)
        engine.push_events(STREAM, pushed[:restart_at])
        if restart_at is not None:
            seen |= _answers(engine)
            engine.close()
            engine = _opened(Path(folder))
            again = engine.stats()["streams"][STREAM]["push_again"]
            left = pushed if again is None else [e for e in pushed if e[0] >= again["from"]][again["skip"] :]
            engine.push_events(STREAM, left)
        engine.advance(STREAM, 1000)
        seen |= _answers(engine)
        engine.close()
    return seen


@settings(max_examples=120, deadline=None)
@given(events, st.integers(0, 24))
def test_a_restart_with_refused_events_changes_no_answer(given_events: list[tuple[int, str]], at: int) -> None:
    pushed = [_event(number, time, kind) for number, (time, kind) in enumerate(given_events)]
    assert _run(pushed, at) == _run(pushed, None)


@pytest.mark.long
@pytest.mark.timeout(3600)
@settings(max_examples=2000, deadline=None)
@given(events, st.integers(0, 24))
def test_a_restart_with_refused_events_changes_no_answer_in_two_thousand_more(
    given_events: list[tuple[int, str]], at: int
) -> None:
    pushed = [_event(number, time, kind) for number, (time, kind) in enumerate(given_events)]
    assert _run(pushed, at) == _run(pushed, None)
