"""The evaluations of all queries of an engine together: each once, in order, and none of a quiet query is looked at."""

from __future__ import annotations

import asyncio
from unittest.mock import patch

import pytest

import penstock
from penstock.engine.answers.result_queue import ResultQueue
from support.bench import rows


def found(evaluations):
    return [(e.time, e.query) for e in evaluations]


@pytest.fixture
def three(bench):
    """Three queries: `x` and `z` are of one group, `y` is of another one."""
    bench.declare("s", "t")
    queries = {
        name: bench.register(f":{name} :p ?o", f"s {window}", header=f"REGISTER QUERY {name} AS")
        for name, window in (("x", "RANGE 100ms"), ("y", "RANGE 200ms STEP 200ms"), ("z", "RANGE 100ms"))
    }
    bench.advance("s", 0)
    return queries


def test_evaluations_are_ordered_by_instant_group_and_registration(bench, three):
    bench.push("s", 50, "x p 1", "z p 2")
    bench.advance("s", 200)
    evaluations = bench.engine.poll()
    assert found(evaluations) == [(100, "x"), (100, "z"), (200, "x"), (200, "z"), (200, "y")]
    assert [rows(e.answer) for e in evaluations] == [["1"], ["2"], [], [], []]
    assert len(bench.engine.poll()) == 0
    assert [query.unpolled() for query in three.values()] == [0, 0, 0]
    assert bench.engine._runtime.schedule.unpolled.bytes == 0


def test_evaluations_are_a_sequence(bench, three):
    bench.advance("s", 200)
    evaluations = bench.engine.poll()
    assert (len(evaluations), bool(evaluations), bool(bench.engine.poll())) == (5, True, False)
    assert found(evaluations[1:4:2]) == [(100, "z"), (200, "z")]
    assert found([evaluations[-1], evaluations[0], evaluations[2]]) == [(200, "y"), (100, "x"), (200, "x")]
    with pytest.raises(IndexError):
        evaluations[5]
    assert "5 evaluations" in repr(evaluations)


def test_what_one_poll_takes_no_other_gives(bench, three):
    bench.advance("s", 200)
    assert found(three["z"].poll(1)) == [(100, "z")]
    assert found(bench.engine.poll(2)) == [(100, "x"), (200, "x")]
    assert three["x"].poll() == []
    assert three["z"].unpolled() == 1
    assert found(bench.engine.poll(0)) == []
    assert found(three["y"].poll()) == [(200, "y")]
    assert found(bench.engine.poll()) == [(200, "z")]
    assert three["z"].poll() == []


def test_a_limit_divides_blocks(bench, three):
    bench.advance("s", 400)
    every = [(t, q) for t in (100, 200, 300, 400) for q in "xzy" if q != "y" or t % 200 == 0]
    assert [found(bench.engine.poll(1)) for _ in range(11)] == [[each] for each in every] + [[]]


def test_only_members_with_rows_have_an_evaluation_with_report_nonempty(bench):
    bench.declare("s")
    for name in "xyz":
        bench.register(f":{name} :p ?o", "s RANGE 100ms", header=f"REGISTER QUERY {name} REPORT NONEMPTY AS")
    bench.advance("s", 0)
    bench.push("s", 50, "x p 1", "z p 1")
    bench.push("s", 150, "y p 1", "z p 1")
    bench.push("s", 250, "x p 1", "y p 1", "z p 1")
    bench.advance("s", 200)
    assert found(bench.engine.poll()) == [(100, "x"), (100, "z"), (200, "y"), (200, "z")]
    bench.advance("s", 300)
    assert found(bench.engine.queries["y"].poll()) == [(300, "y")]
    assert found(bench.engine.poll()) == [(300, "x"), (300, "z")]


def test_quiet_queries_are_not_visited(bench, three):
    bench.register("?s ?p ?o", "t RANGE 100ms", header="REGISTER QUERY w AS")
    bench.advance("t", 0)
    bench.engine.poll()
    bench.advance("t", 100)
    with patch.object(ResultQueue, "take", side_effect=AssertionError):
        assert found(bench.engine.poll()) == [(100, "w")]
    assert bench.engine._runtime.schedule.unpolled.claim() == []


def test_steps_of_query_sets_are_not_among_them(bench):
    bench.declare("s")
    text = "REGISTER QUERY near (?u) AS SELECT ?o FROM STREAM <urn:s> [RANGE 100ms] WHERE { ?u <urn:p> ?o }"
    alerts = bench.engine.register_set(text, [("urn:a",)], report="every")
    query = bench.register()
    bench.advance("s", 0)
    unsubscribe = bench.engine.subscribe(lambda evaluation: None)
    bench.advance("s", 1000)
    assert query.unpolled() == 0
    unsubscribe()
    assert len(bench.engine.poll()) == 0
    assert len(alerts.poll()) == 10


def test_the_evaluations_of_a_subscribed_query_are_its_subscribers(bench, three):
    seen = []
    unsubscribe = three["x"].subscribe(lambda e: seen.append((e.time, e.query)))
    with patch.object(ResultQueue, "deliver"):  # as if another thread had not delivered yet
        bench.advance("s", 200)
        assert found(bench.engine.poll()) == [(100, "z"), (200, "z"), (200, "y")]
        assert len(bench.engine.poll()) == 0
    bench.advance("s", 300)
    assert seen == [(t, "x") for t in (100, 200, 300)]
    unsubscribe()
    bench.advance("s", 400)
    assert found(bench.engine.poll()) == [(300, "z"), (400, "x"), (400, "z"), (400, "y")]


def test_a_subscriber_of_the_engine_gets_all_queries_without_their_own(bench, three):
    seen, own = [], []
    bench.advance("s", 100)
    three["z"].subscribe(lambda e: own.append(e.time))
    unsubscribe = bench.engine.subscribe(lambda e: seen.append((e.time, e.query)))
    assert seen == [(100, "x")]
    bench.advance("s", 200)
    three["x"].stop()
    bench.advance("s", 400)
    assert seen == [(100, "x"), (200, "x"), (200, "y"), (400, "y")]
    assert own == [100, 200, 300, 400]
    unsubscribe()
    bench.advance("s", 600)
    assert found(bench.engine.poll()) == [(600, "y")]


def test_a_subscriber_of_the_engine_may_stop_and_register(bench, three):
    seen = []

    def react(evaluation):
        seen.append((evaluation.time, evaluation.query))
        if evaluation.query == "z":
            three["z"].stop()
            bench.register(":w :p ?o", "s RANGE 100ms", header="REGISTER QUERY w AS")
        if evaluation.query == "w":
            raise ValueError("mine")

    bench.engine.subscribe(react)
    bench.advance("s", 100)
    bench.advance("s", 200)
    assert seen == [(100, "x"), (100, "z"), (200, "x"), (200, "w"), (200, "y")]


def test_a_subscriber_of_the_engine_holds_nothing(make_bench):
    bench = make_bench(limits=penstock.Limits(max_unpolled=5))
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 0)
    bench.engine.subscribe(lambda evaluation: None)
    bench.advance("s", 5_000)
    assert query.unpolled() == 0


def test_iteration_yields_evaluations_as_they_occur_and_ends_with_the_engine(bench, three):
    async def consume():
        return [(e.time, e.query) async for e in bench.engine]

    async def main():
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        await asyncio.to_thread(bench.advance, "s", 100)
        await asyncio.to_thread(three["x"].stop)
        await asyncio.to_thread(bench.advance, "s", 200)
        await asyncio.to_thread(bench.engine.close)
        return await asyncio.wait_for(task, 30)

    assert asyncio.run(main()) == [(100, "x"), (100, "z"), (200, "z"), (200, "y")]


def test_iteration_with_a_subscriber_is_refused(bench):
    bench.engine.subscribe(lambda _: None)

    async def consume():
        async for _ in bench.engine:
            pass

    with pytest.raises(penstock.PenstockError, match="subscriber"):
        asyncio.run(asyncio.wait_for(consume(), 5))


def test_evaluations_of_stopped_queries_stay_pending(bench, three):
    bench.engine.poll()
    bench.advance("s", 200)
    three["x"].stop()
    bench.register(":x :p ?o", "s RANGE 100ms", header="REGISTER QUERY x AS")
    bench.advance("s", 300)
    assert found(three["x"].poll(1)) == [(100, "x")]
    assert found(bench.engine.poll()) == [
        (100, "z"), (200, "x"), (200, "z"), (200, "y"), (300, "z"), (300, "x"),
    ]  # fmt: skip
    assert three["x"].poll() == []


def test_evaluations_of_a_query_that_stopped_before_the_first_poll(bench, three):
    bench.advance("s", 200)
    for name in "xz":
        three[name].stop()
    assert found(three["x"].poll(1)) == [(100, "x")]
    assert found(bench.engine.poll(1)) == [(100, "z")]
    assert found(three["z"].poll()) == [(200, "z")]
    assert found(bench.engine.poll()) == [(200, "x"), (200, "y")]
    assert three["x"].poll() == []


def test_a_closed_engine_gives_what_was_pending(bench, three):
    bench.push("s", 50, "x p 1")
    bench.advance("s", 100)
    bench.engine.close()
    assert [rows(e.answer) for e in bench.engine.poll()] == [["1"], []]
    assert three["x"].poll() == []


@pytest.mark.parametrize("before", range(8))
def test_a_restart_neither_loses_nor_repeats(make_bench, tmp_path, before):
    bench = make_bench(data_dir=tmp_path / "data")
    bench.declare("s")
    for name in "xyz":
        bench.register(f":{name} :p ?o", "s RANGE 100ms", header=f"REGISTER QUERY {name} AS")
    bench.advance("s", 0)
    bench.push("s", 50, "x p 1", "z p 1")
    bench.advance("s", 300)
    every = [(t, q) for t in (100, 200, 300) for q in "xyz"]
    assert found(bench.engine.queries["y"].poll(1)) == [every.pop(1)]
    assert found(bench.engine.poll(before)) == every[:before]
    for _ in range(2):
        bench.reopen()
    assert sum(query.unpolled() for query in bench.engine.queries.values()) == 8 - before
    left = bench.engine.poll()
    assert found(left) == every[before:]
    assert [rows(e.answer) for e in left] == [["1"], ["1"], *[[]] * 6][before:]
    assert bench.engine._runtime.schedule.unpolled.bytes == 0
    bench.advance("s", 400)
    assert found(bench.engine.poll()) == [(400, q) for q in "xyz"]
