"""L1 to L6 over the id-coded LSBench sample: every window has the rows that the data's own brute force counts."""

from __future__ import annotations

import bisect
import functools
from typing import Any

import numpy as np
import pytest
import rdflib

import penstock
from support import shared

DATA = shared.need("data/lsbench-ids")
MAKE = shared.module("data/lsbench-ids/make_events.py")
NAMES = [f"L{k}" for k in range(1, 7)]
STREAMS = list(MAKE.RATE)


def stream(name: str) -> str:
    return f"http://lsbench.example/stream/{name}"


def nt(triple: tuple[int, int, int]) -> str:
    return " ".join(f"<http://lsbench.example/{n}>" for n in triple) + " ."


@functools.cache
def stored() -> bytes:
    return "\n".join(map(nt, MAKE.rows("id_mr0_sibdataset.nt"))).encode()


def start(shards: int = 1) -> tuple[Any, dict[str, Any]]:
    engine = penstock.Engine(shards=shards)
    engine.load(stored(), format="nt")
    for name in STREAMS:
        engine.declare_stream(stream(name), batch_ms=100, timing="all" if name == "gps" else ())
    queries = {n: engine.register((DATA / "queries" / f"{n}.rq").read_text(encoding="utf-8")) for n in NAMES}
    return engine, queries


def collect(queries: dict[str, Any], into: dict[str, dict[int, int]]) -> None:
    for name, query in queries.items():
        for evaluation in query.poll():
            assert evaluation.time not in into[name]
            into[name][evaluation.time] = len(evaluation.answer)


@functools.cache
def stamped(name: str, scale: int) -> tuple[list[int], list[tuple[int, tuple[int, int, int]]]]:
    events = MAKE.stamped(name, scale)
    return [time for time, _ in events], events


def events(name: str, scale: int, low: int, high: int) -> list[tuple[int, tuple[int, int, int]]]:
    times, found = stamped(name, scale)
    return found[bisect.bisect_right(times, low) : bisect.bisect_right(times, high)]


def push_as_text(engine: Any, name: str, chosen: list[tuple[int, tuple[int, int, int]]]) -> None:
    engine.push_events(stream(name), [(time, nt(triple)) for time, triple in chosen])


def push_as_columns(engine: Any, name: str, chosen: list[tuple[int, tuple[int, int, int]]]) -> None:
    if not chosen:
        return
    columns = list(zip(*(triple for _, triple in chosen), strict=True))
    ids = [engine.encode([rdflib.URIRef(f"http://lsbench.example/{n}") for n in column]) for column in columns]
    times = np.array([time for time, _ in chosen], dtype=np.int64)
    engine.push_columns(stream(name), times, *ids)


def run(scale: int, windows: int, *, push: Any = push_as_text, shards: int = 1, stream_by_stream: bool = False) -> None:
    expected = MAKE.counts(scale, windows)
    found: dict[str, dict[int, int]] = {name: {} for name in NAMES}
    step = 100 * windows if stream_by_stream else 100
    engine, queries = start(shards)
    with engine:
        for low in range(0, 100 * windows, step):
            for name in STREAMS:
                push(engine, name, events(name, scale, low, low + step))
                engine.advance(stream(name), low + step)
            collect(queries, found)
    for name in NAMES:
        assert found[name] == {100 * (k + 1): count for k, count in enumerate(expected[name])}, name


@pytest.mark.parametrize(("scale", "windows"), [(1, 60), (20, 20), (100, 5)])
def test_every_window_has_the_counted_rows(scale: int, windows: int) -> None:
    run(scale, windows)


@pytest.mark.parametrize(("scale", "windows"), [(1, 60), (20, 20)])
def test_columns_of_ids_give_the_same_rows_as_text(scale: int, windows: int) -> None:
    run(scale, windows, push=push_as_columns)


def test_three_shards_give_the_same_rows() -> None:
    run(20, 20, shards=3)


def test_streams_may_run_ahead_of_one_another() -> None:
    run(20, 20, stream_by_stream=True)


@pytest.mark.long
@pytest.mark.parametrize(("scale", "windows"), [(1, 600), (20, 200), (100, 60)])
def test_every_window_of_a_longer_run_has_the_counted_rows(scale: int, windows: int) -> None:
    run(scale, windows, push=push_as_columns)
