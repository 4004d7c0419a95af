"""A results topic that refuses answers fails its query visibly; the other queries go on, each evaluation once."""

from __future__ import annotations

import json

import pytest

from penstock.log import LogError, RecordRefusedError
from penstock.services.query_engine.result_sinks import RETRY_MS
from support.small_cluster import SmallCluster

IRI = "http://x/s"
WINDOW = f"FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
SUBJECTS = f"REGISTER QUERY q AS SELECT ?s {WINDOW} ORDER BY ?s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) {WINDOW}"
FIRST = 101


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2)
    made.coordinator.declare(IRI, "s", batch_ms=500)
    made.coordinator.register("own", SUBJECTS, topic="own")
    made.coordinator.register("small", COUNT, topic="own")
    made.coordinator.register("other", COUNT, topic="other")
    made.coordinator.register("shared", COUNT)
    made.advance("s", 100_000)
    made.run()
    yield made
    made.close()


def second(cluster: SmallCluster, number: int, subjects: int) -> None:
    """Push a second of events, and let everything come out."""
    for i in range(subjects):
        cluster.push("s", number * 1_000 - 800, f"<urn:subject/{i:050}> <urn:p> <urn:o> .")
    cluster.advance("s", number * 1_000)
    cluster.run()


def lines(cluster: SmallCluster, topic: str) -> dict[str, dict]:
    found = {}
    for message in cluster.messages(topic):
        key = message.key.decode()
        assert key not in found, f"{key} twice"
        found[key] = json.loads(message.value)
    return found


def every(cluster: SmallCluster) -> dict[str, dict]:
    """All evaluations, wherever they are: none may be there twice."""
    found: dict[str, dict] = {}
    for topic in ("own", "other", cluster.topics.names.results):
        if topic in cluster.log.topics():
            new = lines(cluster, topic)
            assert not found.keys() & new.keys()
            found |= new
    return found


def expected(seconds: int) -> set[str]:
    names = ("own", "small", "other", "shared")
    return {f"{name}@{(FIRST + i) * 1_000}" for name in names for i in range(seconds)}


def error_of(cluster: SmallCluster, name: str) -> str | None:
    standing = cluster.coordinator.standing(name)
    assert standing is not None
    return standing.error


def test_an_answer_beyond_its_topics_limit_becomes_an_error_and_marks_its_query(cluster):
    cluster.log.configure("own", 2_000)
    second(cluster, FIRST, 2)
    assert "error" not in lines(cluster, "own")["own@101000"]
    assert error_of(cluster, "own") is None
    second(cluster, FIRST + 1, 50)
    second(cluster, FIRST + 2, 2)
    found = lines(cluster, "own")
    assert "takes 2000 bytes (max.message.bytes)" in found["own@102000"]["error"]
    assert len(found["own@103000"]["results"]["bindings"]) == 2
    assert "max.message.bytes" in error_of(cluster, "own")
    assert error_of(cluster, "other") is None
    assert every(cluster).keys() == expected(3)
    assert sum(engine.sinks.refused for engine in cluster.engines.values()) == 1
    cluster.log.configure("own", 1 << 20)
    cluster.clock.advance(RETRY_MS)
    second(cluster, FIRST + 3, 50)
    assert len(lines(cluster, "own")["own@104000"]["results"]["bindings"]) == 50
    assert error_of(cluster, "own") is None


def test_a_topic_that_takes_not_even_errors_leaves_them_in_the_results_topic(cluster):
    cluster.log.configure("own", 150)
    second(cluster, FIRST, 50)
    assert lines(cluster, "own") == {}
    assert "max.message.bytes" in lines(cluster, cluster.topics.names.results)["own@101000"]["error"]
    assert every(cluster).keys() == expected(1)


@pytest.mark.parametrize("how", ["deny", "delete"])
def test_a_topic_that_cannot_be_written_fails_its_queries_and_no_other(cluster, how):
    second(cluster, FIRST, 2)
    before = lines(cluster, "own")
    getattr(cluster.log, how)("own")
    second(cluster, FIRST + 1, 2)
    second(cluster, FIRST + 2, 2)
    found = every(cluster) | before
    assert found.keys() == expected(3)
    failed = {key for key, line in found.items() if "error" in line}
    assert failed == {f"{name}@{second}000" for name in ("own", "small") for second in (102, 103)}
    assert all("topic own cannot be written" in found[key]["error"] for key in failed)
    assert "cannot be written" in error_of(cluster, "own")
    assert error_of(cluster, "other") is None
    assert len(cluster.engines) == 2
    if how == "deny":
        cluster.log.allow("own")
    else:
        cluster.coordinator._log.create([cluster.log._topics["other"][0]._replace(name="own")])
    cluster.clock.advance(RETRY_MS)
    second(cluster, FIRST + 3, 2)
    assert "error" not in lines(cluster, "own")["own@104000"]
    assert error_of(cluster, "own") is None


def test_an_engine_that_takes_over_finds_the_topic_out_for_itself(cluster):
    cluster.log.deny("own")
    second(cluster, FIRST, 2)
    cluster.kill("e0")
    cluster.kill("e1")
    cluster.start_engine("e2")
    cluster.run(60)
    second(cluster, FIRST + 1, 2)
    assert every(cluster).keys() == expected(2)
    cluster.log.allow("own")
    cluster.kill("e2")
    cluster.start_engine("e3")
    cluster.run(60)
    second(cluster, FIRST + 2, 2)
    assert every(cluster).keys() == expected(3)
    assert error_of(cluster, "own") is None


def test_results_of_a_query_that_was_stopped_are_replaced_too(cluster):
    cluster.log.deny("own")
    for engine in cluster.engines.values():
        cluster.paused.append(engine)
    second(cluster, FIRST, 2)
    cluster.coordinator.stop("own")
    cluster.run()
    cluster.paused.clear()
    cluster.run()
    assert "error" in every(cluster)["own@101000"]


def test_a_writer_that_a_refusal_has_ended_is_opened_again(cluster, monkeypatch):
    """Kafka's producer does not outlive a topic that it may not write."""
    commit = cluster.log.commit_transaction
    ended: list[int] = []

    def once_refused(*given):
        try:
            return commit(*given)
        except LogError as error:
            if getattr(error, "topic", "") == "own":
                error.over = True
                ended.append(1)
            raise

    monkeypatch.setattr(cluster.log, "commit_transaction", once_refused)
    cluster.log.deny("own")
    second(cluster, FIRST, 2)
    assert ended
    assert every(cluster).keys() == expected(1)


def test_a_refusal_of_a_topic_of_the_clusters_own_is_the_engines(cluster):
    cluster.log.deny(cluster.topics.progress)
    cluster.advance("s", FIRST * 1_000)
    with pytest.raises(LogError, match="authorization"):
        cluster.run()


def test_the_results_topic_of_the_cluster_is_made_again_where_it_was_deleted(cluster):
    second(cluster, FIRST, 2)
    before = every(cluster)
    cluster.log.delete(cluster.topics.names.results)
    second(cluster, FIRST + 1, 2)
    second(cluster, FIRST + 2, 2)
    assert (every(cluster) | before).keys() == expected(3)
    assert not any("error" in line for line in every(cluster).values())
    assert len(cluster.engines) == 2


def test_a_refusal_that_no_topic_repeats_is_tried_again(cluster):
    """Kafka names no topic where it refuses to begin with a partition; later all may be well."""
    second(cluster, FIRST, 2)
    refusals = [RecordRefusedError(": unknown topic or partition", ""), RecordRefusedError(": denied", "", over=True)]
    for engine in cluster.engines.values():
        for bucket in engine.buckets.values():
            commit = bucket.writer.commit

            def refused(records, *given, commit=commit, **named):
                if refusals:
                    raise refusals.pop()
                return commit(records, *given, **named)

            bucket.writer.commit = refused
    second(cluster, FIRST + 1, 2)
    cluster.clock.advance(RETRY_MS)
    second(cluster, FIRST + 2, 2)
    assert not refusals
    assert every(cluster).keys() == expected(3)
    assert not any("error" in line for line in every(cluster).values())
