"""Leaps of event time: instants beyond `max_catch_up` are a gap, the same for every engine (docs/semantics.md §2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.event_time.gaps import Gap
from penstock.log import Record
from penstock.replication.registration import gap_of, stable
from penstock.wire import QueryRegistration
from support.small_cluster import SmallCluster

S, N, MADE = "http://x/s", "http://x/n", "http://x/made"
NOW_MS = 1_700_000_000_000
READ = "REGISTER QUERY {} AS SELECT ?o FROM STREAM <{}> [RANGE 1s STEP 500ms] WHERE {{ ?s <urn:p> ?o }}"


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2, buckets=4)
    made.clock.advance(NOW_MS + 10_000)
    made.run(20)
    for iri, name in ((S, "s"), (N, "n")):
        made.coordinator.declare(iri, name, timing="all")
    made.run(4)
    yield made
    made.close()


def event(value: int) -> str:
    return f"<urn:a> <urn:p> <urn:{value}> ."


def register(cluster: SmallCluster, name: str, text: str | None = None) -> None:
    cluster.coordinator.register(name, text or READ.format(name, N))
    cluster.run(4)


def answers(cluster: SmallCluster, query: str) -> dict[int, list[str]]:
    lines = [line for line in cluster.results() if line["query"] == query]
    assert len(lines) == len({line["time"] for line in lines})
    return {line["time"]: sorted(row["o"]["value"] for row in line["results"]["bindings"]) for line in lines}


def status(cluster: SmallCluster, query: str) -> dict[str, Any]:
    found = cluster.coordinator.standing(query)
    assert found is not None
    return {"point": found.point_ms, "gaps": list(found.gaps)}


def seconds_then_milliseconds(cluster: SmallCluster) -> None:
    """One event whose seconds were taken for milliseconds, then correct ones."""
    cluster.push("n", 1_700_000_100, event(1))
    cluster.run(3)
    for i in range(5):
        cluster.push("n", NOW_MS + 500 * i + 100, event(i + 2))
    cluster.run(4)


def test_a_leap_is_a_gap_and_the_first_answer_behind_it_is_right(cluster):
    register(cluster, "q")
    seconds_then_milliseconds(cluster)
    assert answers(cluster, "q") == {
        NOW_MS + 500: ["urn:2"],
        NOW_MS + 1000: ["urn:2", "urn:3"],
        NOW_MS + 1500: ["urn:3", "urn:4"],
        NOW_MS + 2000: ["urn:4", "urn:5"],
    }
    [gap] = status(cluster, "q")["gaps"]
    assert (gap.after, gap.until) == (1_700_000_100, NOW_MS)
    assert gap.count == (NOW_MS - 1_700_000_000) // 500
    assert sum(engine.commit_metrics.gaps for engine in cluster.engines.values()) == 1
    assert sum(engine.commit_metrics.skipped for engine in cluster.engines.values()) == gap.count
    assert [e.commit_metrics.leaps() for e in cluster.engines.values() if e.commit_metrics.gaps] == [
        {(gap.after, gap.until): ["q"]}
    ]


def test_an_idle_stream_of_old_events_next_to_a_live_one_leaps_without_work(cluster):
    """The documentation's example: events at 1,500 ms, and another stream that follows the wall clock."""
    register(cluster, "q")
    register(cluster, "live", READ.format("live", S))
    cluster.push("n", 1_500, event(1))
    cluster.run(2)
    for i in range(4):
        cluster.push("s", cluster.clock.now_ms(), event(i))
        cluster.run(4)
    cluster.clock.advance(11_000)
    for i in range(4):
        cluster.push("s", cluster.clock.now_ms(), event(i))
        cluster.run(4)
    assert len(status(cluster, "q")["gaps"]) == 1
    assert 0 < len(answers(cluster, "q")) < 100
    assert len(answers(cluster, "live")) > 5


def test_the_next_engine_finds_the_same_gap_in_the_log(cluster):
    register(cluster, "q")
    cluster.push("n", 1_700_000_100, event(1))
    cluster.run(3)
    cluster.paused += [*cluster.engines.values()]  # nobody has applied the leap
    for i in range(5):
        cluster.push("n", NOW_MS + 500 * i + 100, event(i + 2))
    cluster.run(4)
    for name in list(cluster.engines):
        cluster.kill(name)
    cluster.start_engine("e9")
    cluster.run(60)
    assert list(answers(cluster, "q")) == [NOW_MS + 500, NOW_MS + 1000, NOW_MS + 1500, NOW_MS + 2000]
    assert len(status(cluster, "q")["gaps"]) == 1


def test_a_bucket_that_moves_behind_a_leap_keeps_the_gap(cluster):
    register(cluster, "q")
    seconds_then_milliseconds(cluster)
    reported, got = status(cluster, "q"), answers(cluster, "q")
    holder = next(name for name, engine in cluster.engines.items() if any(b.members for b in engine.buckets.values()))
    cluster.kill(holder)
    cluster.run(40)
    cluster.push("n", NOW_MS + 2_700, event(9))
    cluster.push("n", NOW_MS + 3_200, event(10))
    cluster.run(10)
    assert answers(cluster, "q") == got | {NOW_MS + 2500: ["urn:5", "urn:6"], NOW_MS + 3000: ["urn:6", "urn:9"]}
    assert status(cluster, "q") == reported


def test_many_small_steps_are_no_leap(cluster):
    """An engine that was away evaluates every instant, however many there are."""
    cluster.coordinator.register("q", READ.format("q", N), max_catch_up=3)
    cluster.run(4)
    cluster.paused += [*cluster.engines.values()]
    for i in range(40):
        cluster.push("n", 1_000 + 500 * i, event(i))
        cluster.run(1)
    cluster.paused.clear()
    cluster.run(20)
    assert list(answers(cluster, "q")) == [1_000 + 500 * i for i in range(39)]
    assert status(cluster, "q")["gaps"] == []


def test_a_difference_is_to_the_last_answer_before_the_gap(cluster):
    text = f"REGISTER ISTREAM d AS SELECT ?o FROM STREAM <{N}> [RANGE 1s STEP 500ms] WHERE {{ ?s <urn:p> ?o }}"
    register(cluster, "d", text)
    for time in (1_700_000_100, 1_700_000_300, 1_700_000_700):
        cluster.push("n", time, event(1))
    cluster.run(3)
    for i in range(4):
        cluster.push("n", NOW_MS + 500 * i + 100, event(1))
    cluster.run(4)
    got = answers(cluster, "d")
    assert got[1_700_000_500] == ["urn:1"]
    assert got[NOW_MS + 500] == []  # it was in the last answer before the gap, too


def test_a_published_stream_moves_over_the_gap(cluster):
    made = f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?o <urn:p> ?o }} FROM STREAM <{N}> [RANGE 1s STEP 500ms] "
    register(cluster, "made", made + "WHERE { ?s <urn:p> ?o }")
    register(cluster, "r", READ.format("r", MADE))
    for time in (1_700_000_100, 1_700_000_700, 1_700_001_300):
        cluster.push("n", time, event(1))
    cluster.run(4)
    seconds_then_milliseconds(cluster)
    cluster.push("n", NOW_MS + 3_200, event(10))
    cluster.run(20)
    got = answers(cluster, "r")
    assert got[NOW_MS + 1_000] == ["urn:2", "urn:3"]
    assert len([time for time in got if time > NOW_MS]) >= 3
    assert len(got) < 12
    assert len(status(cluster, "r")["gaps"]) == 1


def test_queries_of_one_text_with_different_bounds_skip_different_instants(cluster):
    cluster.coordinator.register("q", READ.format("q", N), max_catch_up=3)
    cluster.coordinator.register("r", READ.format("r", N), max_catch_up=30)
    cluster.run(4)
    for time in (1_100, 5_100, 5_600):
        cluster.push("n", time, event(1))
        cluster.run(3)
    assert [gap.count for gap in status(cluster, "q")["gaps"]] == [7]
    assert status(cluster, "r")["gaps"] == []
    assert list(answers(cluster, "q")) == [5_000, 5_500]
    assert list(answers(cluster, "r")) == [1_500 + 500 * i for i in range(9)]


def test_count_windows_have_no_gap(cluster):
    text = f"REGISTER QUERY c AS SELECT ?o FROM STREAM <{N}> [ELEMENTS 2 STEP 1] WHERE {{ ?s <urn:p> ?o }}"
    register(cluster, "c", text)
    seconds_then_milliseconds(cluster)
    assert answers(cluster, "c")[NOW_MS + 100] == ["urn:1", "urn:2"]
    assert status(cluster, "c")["gaps"] == []


def test_a_stream_of_two_partitions_leaps_when_the_slow_one_becomes_idle(cluster):
    cluster.log.grow(cluster.topics.names.events("n"), 2)
    register(cluster, "q")
    cluster.run(30)
    write(cluster, 0, 1_700_000_100, 1)
    cluster.run(2)
    for i in range(5):
        write(cluster, 1, NOW_MS + 500 * i + 100, i + 2)
    cluster.clock.advance(11_000)
    cluster.run(60)
    assert len(status(cluster, "q")["gaps"]) <= 1
    assert 0 < len(answers(cluster, "q")) < 100


def write(cluster: SmallCluster, partition: int, time: int, value: int) -> None:
    headers = (("timestamp", str(time).encode()),)
    record = Record(cluster.topics.names.events("n"), event(value).encode(), partition=partition, headers=headers)
    cluster._writer.append([record])


# ---- many instants, fewer than a leap
def behind(cluster: SmallCluster, query: str = "q", instants: int = 5_000) -> None:
    """A query has many instants due, by one step."""
    register(cluster, query)
    register(cluster, "live", READ.format("live", S))
    cluster.push("s", 1_000, event(0))
    cluster.push("n", 1_000, event(1))
    cluster.run(2)
    cluster.push("n", 1_000 + 500 * instants, event(2))


def stretch(cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every evaluation takes 20 ms of the clock."""
    for engine in cluster.engines.values():
        firing = engine.replica.runtime.firing
        fire = firing.fire

        def slow(cohort: Any, fire: Any = fire) -> None:
            cluster.clock.advance(20)
            fire(cohort)

        monkeypatch.setattr(firing, "fire", slow)


def test_other_streams_go_on_while_a_query_catches_up(cluster, monkeypatch):
    stretch(cluster, monkeypatch)
    behind(cluster)
    cluster.run(3)
    assert 0 < len(answers(cluster, "q")) < 500
    for i in range(1, 10):
        cluster.push("s", 1_000 + 500 * i, event(i))
        before = cluster.clock.now_ms()
        cluster.run(1)
        assert cluster.clock.now_ms() - before < 1_000
    cluster.run(1)
    assert len(answers(cluster, "live")) >= 7
    assert len(answers(cluster, "q")) < 500


def test_everything_is_evaluated_in_the_end_and_in_order(cluster):
    behind(cluster, instants=3_000)
    cluster.run(60)
    got = [
        json.loads(m.value or b"")["time"] for m in cluster.messages(cluster.topics.names.results) if b'"q"' in m.value
    ]
    assert got == [1_000 + 500 * i for i in range(3_000)]


def test_a_query_that_is_catching_up_is_stopped_at_once(cluster, monkeypatch):
    stretch(cluster, monkeypatch)
    behind(cluster)
    cluster.run(3)
    began = cluster.clock.now_ms()
    cluster.coordinator.stop("q")
    cluster.run(2)
    assert cluster.clock.now_ms() - began < 2_000
    got = len(answers(cluster, "q"))
    assert got < 500
    cluster.run(10)
    assert len(answers(cluster, "q")) == got
    assert not any(engine._catch_up for engine in cluster.engines.values())


def test_an_engine_that_takes_over_a_query_in_catch_up_continues_after_the_last_commit(cluster, monkeypatch):
    stretch(cluster, monkeypatch)
    behind(cluster, instants=300)
    cluster.run(3)
    assert 0 < len(answers(cluster, "q")) < 290
    holder = next(name for name, e in cluster.engines.items() for b in e.buckets.values() if b.members and e._catch_up)
    cluster.kill(holder)
    cluster.run(200)
    assert list(answers(cluster, "q")) == [1_000 + 500 * i for i in range(300)]


# ---- the arithmetic
def query(*streams: str, steps: tuple[int, ...] = (10,), start: int | None = None) -> QueryRegistration:
    return QueryRegistration(1, "q", "", 1, streams, steps=steps, starting_at_ms=start, max_catch_up=10)


def test_streams_are_stable_where_the_last_of_them_is():
    closed = {"a": 5, "b": 3, "c": None}
    assert stable(("a", "b"), closed, {}) == 3
    assert stable(("a", "c"), closed, {}) is None
    assert stable(("a", "b"), closed, {"b": 3}) == 5
    assert stable(("a", "b"), closed, {"a": 5, "b": 3}) == 5


def test_a_gap_has_more_instants_than_may_become_due_at_once():
    assert gap_of(query("a"), 0, 0, 100) is None
    assert gap_of(query("a"), 0, 0, 110) == Gap(0, 110, 11)
    assert gap_of(query("a"), 55, 0, 110) is None  # those before P are not its own
    assert gap_of(query("a"), None, 0, 110) is None
    assert gap_of(query("a"), 0, None, 110) == Gap(0, 110, 11)
    assert gap_of(query("a", start=100), 0, 0, 110) is None
    assert gap_of(query("a", steps=()), 0, 0, 10_000) is None
