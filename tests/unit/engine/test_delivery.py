"""How evaluations reach users: by poll, by callback, by async iteration; each once, in order, bounded."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

import penstock
from penstock.engine.answers.block_log import BlockLog
from penstock.errors import StorageError
from support.bench import rows, timeline


@pytest.fixture
def query(bench):
    bench.declare("s", "t")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 0)
    return query


def test_poll_gives_each_evaluation_once_in_order(bench, query):
    bench.advance("s", 300)
    assert list(timeline(query)) == [100, 200, 300]
    assert query.poll() == []
    bench.advance("s", 400)
    assert list(timeline(query)) == [400]


def test_poll_can_be_limited(bench, query):
    bench.advance("s", 500)
    assert query.unpolled() == 5
    assert [e.time for e in query.poll(2)] == [100, 200]
    assert query.unpolled() == 3
    assert [e.time for e in query.poll(0)] == []
    assert [e.time for e in query.poll(10)] == [300, 400, 500]
    assert query.unpolled() == 0


def test_a_log_yields_block_by_block_what_is_there_by_then():
    log = BlockLog()
    blocks = {
        number: SimpleNamespace(waiting=1, bytes=0, members=SimpleNamespace(one_reader=True)) for number in range(4)
    }
    log.restore(4, blocks)
    following = log.blocks(0, 4)
    assert next(following) == (0, blocks[0])
    log.taken(2)
    assert [number for number, _ in following] == [1, 3]


def test_an_evaluation_says_what_it_read(bench, query):
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    bench.advance("t", 500)
    bench.advance("s", 200)
    first, second = query.poll()
    assert first.query == query.name
    assert (first.snapshot, first.vts, first.attempt) == (1, {"urn:s": 0}, 1)
    assert second.vts == {"urn:s": 1, "urn:t": 4}
    assert first.windows == {"urn:s": (0, 100)}
    assert first.error is None
    assert first.answer is first.answer


def test_a_subscriber_gets_everything_in_order_and_poll_nothing(bench, query):
    seen = []
    bench.advance("s", 100)
    unsubscribe = query.subscribe(lambda e: seen.append(e.time))
    assert seen == [100]
    bench.advance("s", 300)
    assert seen == [100, 200, 300]
    assert query.poll() == []
    unsubscribe()
    bench.advance("s", 400)
    assert seen == [100, 200, 300]
    assert list(timeline(query)) == [400]


def test_a_subscriber_that_fails_ends_nothing(bench, query, caplog):
    seen = []

    def fail(evaluation):
        seen.append(evaluation.time)
        raise ValueError("mine")

    query.subscribe(fail)
    bench.advance("s", 200)
    assert seen == [100, 200]
    assert "mine" in caplog.text


def test_what_a_subscriber_did_not_wait_for_can_be_polled(bench, query):
    seen = []
    unsubscribe = query.subscribe(lambda e: (seen.append(e.time), unsubscribe()))
    bench.advance("s", 400)
    assert seen == [100]
    bench.advance("s", 500)
    assert list(timeline(query)) == [200, 300, 400, 500]


def test_a_callback_that_is_interrupted_costs_nothing_but_its_own_evaluation(bench, query):
    bench.advance("s", 300)
    seen = []

    def interrupted(evaluation):
        seen.append(evaluation.time)
        if len(seen) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        query.subscribe(interrupted)
    bench.advance("s", 400)
    assert seen == [100, 200, 300, 400]


def test_a_subscriber_may_push_register_and_stop(bench, query):
    seen = []
    other = bench.register("?s ?p ?o", "t RANGE 100ms")
    bench.advance("t", 0)

    def react(evaluation):
        seen.append(evaluation.time)
        bench.push("t", evaluation.time, "x p y")
        if evaluation.time == 200:
            bench.advance("s", 300)
        if evaluation.time == 300:
            query.stop()

    query.subscribe(react)
    bench.advance("s", 200)
    assert seen == [100, 200, 300]
    assert query.stopped
    bench.advance("t", 300)
    assert timeline(other) == {t: [("x", "p", "y")] for t in (100, 200, 300)}


def test_pushes_from_two_threads_do_not_deadlock_with_callbacks(bench, query):
    bench.register("?s ?p ?o", "t RANGE 100ms").subscribe(lambda e: bench.engine.stats())
    seen = []
    query.subscribe(lambda e: (seen.append(e.time), bench.advance("t", e.time)))

    def run(stream):
        for time in range(100, 3001, 100):
            bench.advance(stream, time)

    threads = [threading.Thread(target=run, args=(name,)) for name in ("s", "t")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert seen == list(range(100, 3001, 100))


def test_async_iteration_with_a_subscriber_is_refused(query):
    query.subscribe(lambda _: None)

    async def consume():
        async for _ in query:
            pass

    with pytest.raises(penstock.PenstockError, match="subscriber"):
        asyncio.run(asyncio.wait_for(consume(), 5))


def test_async_iteration_ends_when_the_query_stops(bench, query):
    async def consume():
        seen = []
        async for evaluation in query:
            seen.append(evaluation.time)
            if evaluation.time == 300:
                query.stop()
        return seen

    async def main():
        task = asyncio.create_task(consume())
        await asyncio.sleep(0)
        await asyncio.to_thread(bench.advance, "s", 200)
        await asyncio.to_thread(bench.advance, "s", 300)
        return await asyncio.wait_for(task, 30)

    assert asyncio.run(main()) == [100, 200, 300]


def test_a_stopped_query_can_still_be_polled_but_fires_no_more(bench, query):
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    query.stop()
    query.stop()
    bench.advance("s", 500)
    assert timeline(query) == {100: [("a", "p", "b")]}
    assert query.stopped


def test_close_stops_all_queries_and_what_fired_stays_readable(bench, query):
    bench.push("s", 50, "a p b")
    bench.advance("s", 100)
    bench.engine.close()
    bench.engine.close()
    assert query.stopped
    assert timeline(query) == {100: [("a", "p", "b")]}
    with pytest.raises(penstock.PenstockError, match="closed"):
        bench.advance("s", 500)
    with pytest.raises(penstock.PenstockError, match="closed"):
        bench.engine.query("ASK {}")


def test_close_ends_all_queries_even_if_nothing_could_be_saved(make_bench, tmp_path, monkeypatch):
    bench = make_bench(data_dir=tmp_path / "data")
    bench.declare("s")
    query = bench.register()
    monkeypatch.setattr("penstock.engine.checkpoint.durability.save", Mock(side_effect=StorageError("no space left")))
    with pytest.raises(StorageError, match="no space"):
        bench.engine.close()
    assert query.stopped


@pytest.mark.parametrize(
    "windows",
    [("s RANGE 1s",), ("s TRIPLES 2",), ("s RANGE 1s", "t RANGE 2s")],
    ids=["a time window", "a count window", "two streams"],
)
def test_a_closed_engine_frees_its_memory_at_once_even_if_its_queries_are_referenced(make_bench, windows):
    bench = make_bench()
    bench.declare("s", "t")
    queries = [
        bench.register("?s :p ?o", *windows),
        bench.register("?s :p ?o", *windows, select="CONSTRUCT { ?s :q ?o }", header="REGISTER STREAM <urn:d> AS"),
        bench.register("?s :q ?o", "d RANGE 1s"),
    ]
    queries[0].subscribe(lambda evaluation: None)
    queries[2].stop()
    for time in range(0, 5000, 500):
        bench.push("s", time, "a p b")
        bench.advance(None, time)
    bench.engine.query("SELECT * { ?s ?p ?o }")
    gc.collect()
    gc.disable()
    try:
        held = [weakref.ref(stream) for stream in bench.engine._runtime.streams]
        held += [weakref.ref(bench.engine._runtime), weakref.ref(bench.engine)]
        bench.engine.close()
        del bench.engine
        assert [thing() for thing in held] == [None] * len(held)
        assert all(query.stopped for query in queries)
        assert {len(evaluation.answer) for evaluation in queries[1].poll()} == {1}
    finally:
        gc.enable()
        bench.engine = Mock()  # whom the fixture closes


def test_unpolled_evaluations_are_bounded(make_bench):
    bench = make_bench(limits=penstock.Limits(max_unpolled=5))
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    polled = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.advance("s", 0)
    for time in range(100, 501, 100):
        bench.advance("s", time)
        polled.poll()
    bench.push("s", 501, "a p b")
    with pytest.raises(penstock.LimitError, match="poll"):
        bench.push("s", 700, "a p b")
    assert bench.engine.stats()["streams"]["urn:s"]["watermark"] == 500
    assert len(query.poll()) == 5
    bench.push("s", 700, "a p b")
    assert [e.time for e in query.poll()] == [600]


def test_one_advance_cannot_exceed_the_bound_on_unpolled_evaluations(make_bench):
    bench = make_bench(limits=penstock.Limits(max_unpolled=1000))
    bench.declare("s", batch_ms=1)
    query = bench.register("?s ?p ?o", "s RANGE 1ms STEP 1ms")
    bench.advance("s", 0)
    with pytest.raises(
        penstock.LimitError, match=r"holds 0 .* 3000 more would fire \(max_unpolled is 1000\)"
    ) as caught:
        bench.advance("s", 3000)
    assert caught.value.limit == "max_unpolled"
    assert bench.engine.stats()["streams"]["urn:s"]["watermark"] == 0
    bench.advance("s", 1000)
    with pytest.raises(penstock.LimitError, match="holds 1000 "):
        bench.push("s", 1002, "a p b")
    assert len(query.poll()) == 1000
    query.subscribe(lambda evaluation: None)
    bench.advance("s", 50_000)  # subscribers hold nothing
    assert query.unpolled() == 0


def test_bytes_of_unpolled_answers_are_bounded(make_bench):
    bench = make_bench(limits=penstock.Limits(unpolled_mb=1))
    bench.declare("s")
    rows = [f"a{i} p b" for i in range(1000)]
    query = bench.register("?s ?p ?o", "s RANGE 100ms", select="SELECT *")
    heard = bench.register("?x ?y ?z", "s RANGE 100ms", select="SELECT ?x")
    heard.subscribe(lambda evaluation: None)
    bench.advance("s", 0)

    def push_many() -> None:
        for time in range(50, 10_000, 100):
            bench.push("s", time, *rows)

    with pytest.raises(penstock.LimitError, match=f"unpolled_mb is 1.*stop query {query.name}") as caught:
        push_many()
    assert caught.value.limit == "unpolled_mb"
    held = bench.engine._runtime.schedule.unpolled
    assert 700_000 < held.bytes <= 1 << 20
    watermark = bench.engine.stats()["streams"]["urn:s"]["watermark"]
    with pytest.raises(penstock.LimitError, match="unpolled_mb"):
        bench.advance("s", watermark + 100)  # nothing has changed
    assert bench.engine.stats()["streams"]["urn:s"]["watermark"] == watermark
    query.poll()
    assert held.bytes == 0
    bench.advance("s", watermark + 100)


def test_stopped_queries_hold_no_counted_bytes(make_bench):
    bench = make_bench()
    bench.declare("s")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    bench.push("s", 50, "a p b")
    bench.advance("s", 500)
    held = bench.engine._runtime.schedule.unpolled
    assert held.bytes > 0
    query.stop()
    assert held.bytes == 0
    assert len(query.poll()) > 0


def test_a_sparse_query_is_not_blamed_for_what_others_of_its_group_hold(make_bench):
    bench = make_bench(limits=penstock.Limits(max_unpolled=5))
    bench.declare("s")
    header = "REGISTER QUERY {} REPORT NONEMPTY AS"
    quiet = bench.register(":quiet :p ?o", "s RANGE 100ms", header=header.format("quiet"))
    loud = bench.register(":loud :p ?o", "s RANGE 100ms", header=header.format("loud"))
    for time in range(50, 2050, 100):
        bench.push("s", time, "loud p b")
        assert len(loud.poll()) == (time > 50)
    assert quiet.poll() == []
    assert len(loud._member.cohort.log) == 0


def test_nonempty_reports_only_answers_with_something_in_them(bench):
    bench.declare("s")
    queries = {
        form: bench.register("?s :p ?o", "s RANGE 100ms", select=form, header=f"REGISTER QUERY {i} REPORT NONEMPTY AS")
        for i, form in zip("xyz", ("SELECT ?o", "ASK", "CONSTRUCT { ?s :q ?o }"), strict=True)
    }
    bench.push("s", 150, "a p b")
    bench.advance("s", 400)
    assert {form: timeline(q) for form, q in queries.items()} == {
        "SELECT ?o": {200: ["b"]},
        "ASK": {200: [True]},
        "CONSTRUCT { ?s :q ?o }": {200: [("a", "q", "b")]},
    }


def test_answers_stay_readable_after_their_window_is_long_gone(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s ?p ?o", "s RANGE 100ms")
    for k in range(1, 400):
        bench.push("s", 100 * k, f"subject-number-{k} p object-number-{k}")
    evaluations = query.poll()
    assert bench.engine.stats()["terms_forgotten"] == 0
    assert [rows(e.answer) for e in evaluations] == [
        [(f"subject-number-{k}", "p", f"object-number-{k}")] for k in range(1, 399)
    ]
    del evaluations
    for k in range(400, 800):
        bench.push("s", 100 * k, f"subject-number-{k} p object-number-{k}")
        query.poll()
    assert bench.engine.stats()["terms_forgotten"] > 600
