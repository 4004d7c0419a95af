"""The demo's queries over its recorded day."""

from __future__ import annotations

import pytest

from penstock.cli.local.demo import BASE, MORNING, examples
from penstock.cli.local.recording import Recording, replay
from penstock.engine import Engine

RUN_MS = 20 * 1800 * 1000
"""Event time of a default run: 20 seconds at 1,800 times real time."""


@pytest.fixture(scope="module")
def answered() -> dict[str, int]:
    """When each query first reports, as far as a default run goes."""
    folder = examples()
    first: dict[str, int] = {}
    with Engine() as engine:
        engine.load(folder / "city.ttl")
        recordings = [Recording(f"{BASE}{name}", str(folder / f"{name}.stream")) for name in ("traffic", "parking")]
        for recording in recordings:
            engine.declare_stream(recording.stream, batch_ms=60_000, timing="all")
        queries = {path.stem: engine.register(path.read_text()) for path in sorted((folder / "queries").glob("*.rq"))}
        replay(engine, recordings, speed=None, start_ms=MORNING, after_step=lambda t: t < MORNING + RUN_MS)
        for stem, query in queries.items():
            if evaluations := query.poll():
                first[stem] = evaluations[0].time
    return first


@pytest.mark.parametrize("stem", [path.stem for path in sorted((examples() / "queries").glob("*.rq"))])
def test_each_query_answers_in_the_first_half_of_a_default_run(answered: dict[str, int], stem: str) -> None:
    assert answered[stem] - MORNING < RUN_MS / 2
