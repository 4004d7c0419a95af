"""Ever-new terms of timing streams are forgotten: memory stays where it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import rdflib

import penstock

S = "urn:x:stream/gps"


def resident_mb() -> float:
    """Return this process's resident memory now."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError


def flow(events: int, warm_up: int, allowed_mb: float) -> None:
    """Push `events` fixes with new IRIs and literals each, a thousand a second, under a standing query."""
    with penstock.Engine() as engine:
        engine.declare_stream(S, batch_ms=100, timing="all")
        query = engine.register(
            f"SELECT (COUNT(*) AS ?n) FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?fix <urn:x:at> ?place }}"
        )
        block, before = 10_000, 0.0
        for first in range(0, events, block):
            chunk = [
                (
                    k,
                    f'<urn:x:fix/{k:012d}/of/a/journey/through/the/city> <urn:x:at> "place number {k:012d}, and more" .',
                )
                for k in range(first + 1, first + block + 1)
            ]
            engine.push_events(S, chunk)
            assert all(int(next(iter(e.answer))["n"]) == 1000 for e in query.poll())
            if first + block == warm_up:
                before = resident_mb()
        after, forgotten = resident_mb(), engine.stats()["terms_forgotten"]
        print(f"{before:.0f} MB after {warm_up} events, {after:.0f} MB after {events}; {forgotten} terms were removed")
        assert after - before < allowed_mb, (before, after)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_a_timing_stream_of_new_terms_leaves_memory_where_it_was() -> None:
    flow(300_000, 100_000, 20)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
def test_ten_million_events_of_new_terms_leave_memory_where_it_was() -> None:
    flow(10_000_000, 500_000, 30)


def test_ids_of_encoded_terms_stay_valid() -> None:
    """What the caller encoded is the caller's: forgetting must not touch it."""
    with penstock.Engine() as engine:
        engine.declare_stream(S, timing="all")
        terms = [rdflib.URIRef(f"urn:x:stored/{k}") for k in range(1000)]
        ids = engine.encode(terms)
        for second in range(20):
            times = np.full(1000, second * 1000 + 1, dtype=np.int64)
            engine.push_columns(S, times, ids, ids, ids)
            engine.advance(S, (second + 1) * 1000)
        assert list(engine.decode(ids)) == terms
