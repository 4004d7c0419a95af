"""Query sets of a cluster: members from the parameters topic, results, dead letters, limits; restarts and moves at any
moment neither lose nor double an evaluation of a member.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import partial
from typing import Any

import pytest

from penstock.engine.limits import Limits
from penstock.errors import DataError, QueryError
from penstock.services.query_engine.sets.taken_records import MAX_RUNS, REFUSED, Run, TakenRecords
from support.small_cluster import SmallCluster

IRI = "http://x/s"
TOPIC = "penstock.parameters.near"
TEXT = (
    f"REGISTER QUERY near (?user ?limit) AS SELECT ?o FROM STREAM <{IRI}> [RANGE 3s STEP 1s]"
    " WHERE { ?user <urn:p> ?o FILTER(?o < ?limit) }"
)
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2)
    made.coordinator.declare(IRI, "s", batch_ms=500, timing="all", idle_timeout_ms=1 << 40)
    yield made
    made.close()


def put(cluster: SmallCluster, key: str, user: Any = "urn:a", limit: Any = 5) -> None:
    cluster.send(TOPIC, key, json.dumps({"user": user, "limit": limit}))


def push(cluster: SmallCluster, second: int, **values: int) -> None:
    """Push what each user has in a second, and close it."""
    for user, value in values.items():
        cluster.push("s", second * 1_000 - 300, f'<urn:{user}> <urn:p> "{value}"{INTEGER} .')
    cluster.advance("s", second * 1_000)
    cluster.run()


def lines(cluster: SmallCluster) -> list[dict[str, Any]]:
    return [json.loads(message.value or b"") for message in cluster.messages(cluster.topics.names.results)]


def found(cluster: SmallCluster) -> list[tuple[int, str, list[str]]]:
    """Return (second, member, values) of each record, in order."""
    made = [
        (x["time"] // 1000, x["member"], sorted(b["o"]["value"] for b in x["results"]["bindings"]))
        for x in lines(cluster)
    ]
    return sorted(made)


def letters(cluster: SmallCluster) -> list[tuple[str | None, str]]:
    said = []
    for message in cluster.messages(cluster.topics.names.dead_letter):
        headers = {name: value.decode() for name, value in message.headers}
        said.append(((message.value or b"").decode(), headers["reason"]))
    return said


def begun(cluster: SmallCluster, report: str = "nonempty") -> None:
    cluster.coordinator.register("near", TEXT, report=report)
    cluster.run()


def test_members_come_are_replaced_and_removed(cluster):
    begun(cluster)
    put(cluster, "ann", "urn:a", 5)
    put(cluster, "bob", "urn:b", 9)
    cluster.run()
    push(cluster, 101, a=4, b=8, c=1)
    put(cluster, "cid", "urn:c", 2)
    put(cluster, "bob", "urn:b", 7)
    cluster.run()
    push(cluster, 102, b=6, c=1)
    cluster.send(TOPIC, "ann", None)
    cluster.run()
    push(cluster, 103, a=3, b=8)
    assert found(cluster) == [
        (101, "ann", ["4"]),
        (101, "bob", ["8"]),
        (102, "ann", ["4"]),
        (102, "bob", ["6"]),
        (102, "cid", ["1"]),
        (103, "bob", ["6"]),
        (103, "cid", ["1"]),
    ]
    keys = [message.key for message in cluster.messages(cluster.topics.names.results)]
    assert b"near/ann@101000" in keys
    assert letters(cluster) == []


def test_a_record_that_cannot_be_a_member_is_a_dead_letter_and_removes_the_member(cluster):
    begun(cluster)
    for key in ("ann", "bob"):
        put(cluster, key)
    cluster.run()
    cluster.send(TOPIC, None, "{}")
    cluster.send(TOPIC, "ann", "nonsense")
    cluster.send(TOPIC, "cid", "[1]")
    put(cluster, "dan", 5)
    put(cluster, "eve", "urn:a", None)
    put(cluster, "fay", "urn:a", {"type": "literal", "value": "9", "datatype": INTEGER[3:-1]})
    cluster.run()
    push(cluster, 101, a=4)
    assert found(cluster) == [(101, "bob", ["4"]), (101, "fay", ["4"])]
    reasons = [reason for _, reason in letters(cluster)]
    assert len(reasons) == 5
    assert all(reason.startswith("not a member of near: ") for reason in reasons)
    assert letters(cluster)[1][0] == "nonsense"


def test_reports_of_changes_continue_after_a_restart(cluster):
    begun(cluster, "change")
    put(cluster, "ann", "urn:a", 5)
    put(cluster, "bob", "urn:b", 9)
    cluster.run()
    push(cluster, 101, a=4, b=8)
    for name in list(cluster.engines):
        cluster.kill(name)
    cluster.start_engine("e9")
    cluster.run(300)
    push(cluster, 102, b=8)
    push(cluster, 103, a=3)
    assert found(cluster) == [
        (101, "ann", ["4"]),
        (101, "bob", ["8"]),
        (103, "ann", ["3", "4"]),
    ]


def some_steps(cluster: SmallCluster, rng: random.Random) -> None:
    for _ in range(rng.randrange(4)):
        for service in (cluster.coordinator, cluster.adaptor, cluster.dispatcher, *cluster.engines.values()):
            if rng.random() < 0.7:
                service.step()


def run_story(seed: int, text: str, report: str, *, faults: bool, parts: int = 1) -> list[Any]:
    """Return the sorted records of a random story. `faults`: engines are killed and started between its steps, and the
    topics are compacted. `parts`: of the set.
    """
    rng, chance = random.Random(seed), random.Random(f"{seed} faults")
    cluster = SmallCluster(engines=2, buckets=4)
    cluster.coordinator.declare(IRI, "s", batch_ms=500, timing="all", idle_timeout_ms=1 << 40)
    if rng.random() < 0.5:
        push(cluster, 90, a=1)
    cluster.coordinator.register("near", text, report=report, parts=parts)
    cluster.run()
    started = 2

    def strike() -> None:
        nonlocal started
        if not faults:
            return
        some_steps(cluster, chance)
        if chance.random() < 0.3:
            cluster.kill(chance.choice(list(cluster.engines)))
            cluster.start_engine(f"e{started}")
            started += 1
            some_steps(cluster, chance)
        if chance.random() < 0.3:
            cluster.log.compact(TOPIC)

    second = 100
    for _ in range(8):
        for _ in range(rng.randrange(3)):
            key, user = f"m{rng.randrange(5)}", f"urn:{rng.choice('abc')}"
            match rng.randrange(6):
                case 0:
                    cluster.send(TOPIC, key, None)
                case 1:
                    cluster.send(TOPIC, key, "bad")
                case _:
                    put(cluster, key, user, rng.choice([2, 4, 9]))
        strike()
        cluster.run(90 if faults else 20)
        second += rng.choice([1, 1, 1, 2, 4])
        for user in "abc":
            if rng.random() < 0.7:
                time = second * 1_000 - rng.randrange(900)
                cluster.push("s", time, f'<urn:{user}> <urn:p> "{rng.randrange(5)}"{INTEGER} .')
        cluster.advance("s", second * 1_000)
        strike()
        cluster.run(90 if faults else 20)
    records = Counter(json.dumps([x["member"], x["time"], x.get("error"), rows_of(x)]) for x in lines(cluster))
    rejected = Counter(json.dumps(letter) for letter in letters(cluster))
    cluster.close()
    return [sorted(records.elements()), sorted(rejected.elements())]


def rows_of(line: dict[str, Any]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in line.get("results", {}).get("bindings", ()))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["every", "nonempty", "change", "istream"])
def test_kills_moves_and_compaction_change_no_result(seed, kind):
    text = TEXT.replace("REGISTER QUERY", "REGISTER ISTREAM") if kind == "istream" else TEXT
    report = "nonempty" if kind == "istream" else kind
    without = run_story(seed, text, report, faults=False)
    assert without[0]
    assert run_story(seed, text, report, faults=True) == without


@pytest.mark.parametrize("seed", range(3, 6))
@pytest.mark.parametrize("kind", ["every", "nonempty", "change", "istream"])
def test_the_parts_of_a_set_have_the_results_of_the_whole_set(seed, kind):
    text = TEXT.replace("REGISTER QUERY", "REGISTER ISTREAM") if kind == "istream" else TEXT
    report = "nonempty" if kind == "istream" else kind
    whole = run_story(seed, text, report, faults=False)
    assert whole[0]
    for parts in (3, 9):
        assert run_story(seed, text, report, faults=True, parts=parts) == whole


def test_a_set_has_at_most_max_members(monkeypatch):
    monkeypatch.setattr("support.small_cluster.Limits", partial(Limits, max_members=2))
    cluster = SmallCluster(engines=1)
    cluster.coordinator.declare(IRI, "s", batch_ms=500, timing="all", idle_timeout_ms=1 << 40)
    begun(cluster)
    for key in ("ann", "bob", "cid"):
        put(cluster, key)
    cluster.run()
    push(cluster, 101, a=1)
    cluster.send(TOPIC, "ann", None)
    put(cluster, "dan")
    cluster.run()
    cluster.kill("e0")
    cluster.start_engine("e1")
    cluster.run(200)
    push(cluster, 102, a=2)
    assert [each[:2] for each in found(cluster)] == [(101, "ann"), (101, "bob"), (102, "bob"), (102, "dan")]
    assert [reason for _, reason in letters(cluster)] == ["not a member of near: the set has 2 members (max_members)"]
    cluster.close()


def test_a_set_that_is_stopped_and_registered_again_has_the_members_of_its_topic(cluster):
    begun(cluster)
    put(cluster, "ann")
    cluster.run()
    push(cluster, 101, a=1)
    cluster.coordinator.stop("near")
    cluster.run()
    push(cluster, 102, a=2)
    begun(cluster)
    push(cluster, 103, a=3)
    assert found(cluster) == [(101, "ann", ["1"]), (103, "ann", ["3"])]


def test_sets_by_topic_and_replaced_texts(cluster):
    cluster.send("penstock.queries", "near", TEXT, report="nonempty", key="user")
    cluster.run()
    put(cluster, "ann")
    cluster.run()
    push(cluster, 101, a=1)
    cluster.send("penstock.queries", "near", TEXT.replace("?o < ?limit", "?o > ?limit"), report="nonempty")
    cluster.run()
    push(cluster, 102, a=9)
    assert found(cluster) == [(101, "ann", ["1"]), (102, "ann", ["9"])]


def test_a_set_without_members_retains_no_tuples(cluster):
    begun(cluster)
    (stream,) = next(iter(cluster.engines.values())).replica.runtime.streams
    for i in range(40):
        push(cluster, 101 + i, a=1)
    assert stream.core.live_tuples() < 20


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (TEXT, {"changes": True}, "`changes` is an option of queries"),
        (TEXT, {"report": "some"}, "report is one of every, nonempty, change"),
        (TEXT.replace(" (?user ?limit)", ""), {"report": "every"}, "the text declares no parameters"),
        (TEXT.replace("RANGE 3s STEP 1s", "TRIPLES 5"), {}, "time windows with a range"),
        (TEXT.replace("RANGE 3s STEP 1s", "ALL STEP 1s"), {}, "time windows with a range"),
        (TEXT.replace("QUERY", "ISTREAM"), {}, "a report of changes and ISTREAM exclude each other"),
    ],
)
def test_invalid_sets_are_refused(cluster, text, options, message):
    with pytest.raises((DataError, QueryError), match=message.replace("`", ".")):
        cluster.coordinator.register("near", text, **options)
    assert cluster.coordinator.queries == {}


def test_repeating_a_registration_has_no_effect(cluster):
    made = cluster.coordinator.register("near", TEXT)
    assert made.report == "change"
    assert cluster.coordinator.register("near", TEXT) == made
    cluster.coordinator.close()
    cluster.restart_coordinator()
    assert cluster.coordinator.register("near", TEXT, report="change") == made
    with pytest.raises(QueryError, match="already a query named near"):
        cluster.coordinator.register("near", TEXT, report="every")


def test_runs_of_taken_records():
    taken = TakenRecords()
    for offset, point in ((1, None), (2, None), (5, 10), (6, 10), (7, REFUSED), (9, 20)):
        taken.add(offset, point, offset)
    taken.end = 10
    assert TakenRecords.of(taken.as_json()) == taken
    assert [taken.run_of(offset) for offset in (0, 2, 3)] == [None, Run(1, 3, None), None]
    taken.settle(10, {10}, 20)
    assert taken.runs == [Run(1, 3, 10), Run(5, 7, 10), Run(7, 8, REFUSED)]
    taken.runs = []
    for offset, previous in ((3, 0), (8, 4), (9, 9), (20, 11)):  # between 9 and 20, another record of the set
        taken.add(offset, 10, previous)
    assert taken.runs == [Run(3, 10, 10), Run(20, 21, 10)]
    taken.runs = [Run(i, i + 1, 10) for i in range(MAX_RUNS)]
    assert taken.full
    taken.runs[5] = Run(5, 6, REFUSED)
    assert not taken.full
    assert taken.run_of(5) is None


@pytest.fixture
def split():
    """A cluster with a set in several buckets of two engines."""
    made = SmallCluster(engines=2, buckets=4)
    made.coordinator.declare(IRI, "s", batch_ms=500, timing="all", idle_timeout_ms=1 << 40)
    push(made, 100, a=1)
    made.coordinator.register("near", TEXT, report="nonempty", parts=3)
    made.run()
    yield made
    made.close()


def feeds(cluster: SmallCluster) -> list[int]:
    """The number of members in each part, by engine and bucket."""
    buckets = [bucket for engine in cluster.engines.values() for bucket in engine.buckets.values()]
    return [len(feed.member) for bucket in buckets for feed in bucket.feeds.values()]


def test_the_parts_of_a_set_share_its_members_and_its_stop(split):
    keys = [f"m{number}" for number in range(12)]
    for key in keys:
        put(split, key)
    put(split, "m0", "no IRI")
    split.run()
    assert (len(feeds(split)), sum(feeds(split)), min(feeds(split)) > 0) == (3, 11, True)
    ((_, reason),) = letters(split)
    assert reason.startswith("not a member of near: user is not an absolute IRI: <no IRI>")
    push(split, 101, a=1)
    assert [member for _, member, _ in found(split)] == sorted(keys[1:])
    (status,) = {engine.status("near") for engine in split.engines.values()}
    assert (status.name, status.last, status.next) == ("near", 101_000, 102_000)
    split.coordinator.stop("near")
    push(split, 102, a=1)
    push(split, 103, a=1)
    assert feeds(split) == []
    assert len(lines(split)) == len(keys) - 1
    assert all(len(engine.replica.registrations) == 0 for engine in split.engines.values())


def test_a_replaced_set_with_other_parts(split):
    for key in "abcdef":
        put(split, key)
    split.run()
    made = split.coordinator.register("near", TEXT, report="nonempty", parts=2, replace=True)
    split.run(60)
    assert (made.parts, len(feeds(split)), sum(feeds(split))) == (2, 2, 6)
    push(split, 101, a=1)
    assert [member for _, member, _ in found(split)] == list("abcdef")


def test_parts_retain_the_tuples_of_their_windows(split):
    put(split, "ann")  # in one part: the others have no members
    split.run()
    (stream,) = next(iter(split.engines.values())).replica.runtime.streams
    for second in range(101, 141):
        push(split, second, a=1)
    assert stream.core.live_tuples() < 30
    assert len(found(split)) == 40


def test_an_engine_retains_what_the_parts_of_another_engine_need(split):
    keys = [f"m{number}" for number in range(12)]
    for key in keys:
        put(split, key)
    split.run()
    push(split, 101, a=1)
    home = split.coordinator.queries["near"].group % 4  # the bucket of the first part
    (here,) = (engine for engine in split.engines.values() if home in engine.buckets)
    (other,) = (engine for engine in split.engines.values() if engine is not here)
    assert any(bucket.feeds for bucket in other.buckets.values())
    (stream,) = here.replica.runtime.streams
    retained = stream.core.live_tuples()
    split.paused += [other, split.coordinator]  # the buckets remain where they are
    for second in range(102, 122):
        push(split, second, a=1)
    assert stream.core.live_tuples() >= retained + 15
    split.paused.clear()
    split.run()
    assert [each[:2] for each in found(split)] == [(second, key) for second in range(101, 122) for key in sorted(keys)]
    push(split, 130, a=1)
    split.run()
    assert stream.core.live_tuples() <= retained + 5
