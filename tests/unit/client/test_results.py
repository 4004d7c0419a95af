"""How evaluations reach the queries of one client."""

from __future__ import annotations

import json

import pytest

from penstock.client import results
from penstock.client.results import Results
from penstock.errors import LimitError
from penstock.log import MemoryLog, Record, Topic
from penstock.log.clock import VirtualClock


@pytest.fixture
def log():
    made = MemoryLog(VirtualClock())
    made.create([Topic("r", 2)])
    return made


def commit(log, topic, query, time):
    line = {"query": query, "time": time, "windows": {}, "snapshot": 1, "attempt": 1, "head": {}, "boolean": True}
    log.writer().append([Record(topic, json.dumps(line).encode(), partition=time % 2 if topic == "r" else 0)])


def test_each_query_takes_its_own_and_what_came_since_it_is_followed(log):
    commit(log, "r", "a", 1)
    found = Results(log)
    found.follow("r", "a")
    found.follow("r", "b")
    for query, time in [("a", 2), ("b", 2), ("c", 2), ("a", 4)]:
        commit(log, "r", query, time)
    assert [e.time for e in found.take("a", 1, 0.0)] == [2]
    assert [e.time for e in found.take("b", None, 0.0)] == [2]
    assert [e.time for e in found.take("a", None, 0.0)] == [4]
    assert found.take("c", None, 0.0) == []
    found.unfollow("a")
    commit(log, "r", "a", 6)
    assert found.take("a", None, 0.0) == []
    found.close()


def test_a_topic_that_came_with_its_query_is_read_from_its_start(log):
    found = Results(log)
    found.follow("own", "a")
    log.create([Topic("own", 1)])
    commit(log, "own", "a", 1)
    found.follow("own", "a", made=True)
    assert [e.time for e in found.take("a", None, 0.0)] == [1]
    found.close()


def test_a_query_that_is_registered_anew_for_another_topic_is_read_there(log):
    log.create([Topic("own", 1)])
    commit(log, "own", "a", 1)
    found = Results(log)
    found.follow("r", "a")
    found.follow("own", "a")  # asked for; were it refused, the one before would stand
    commit(log, "r", "a", 2)
    assert [e.time for e in found.take("a", None, 0.0)] == [2]
    commit(log, "own", "a", 3)
    found.follow("own", "a", made=True)
    commit(log, "own", "a", 5)
    assert [e.time for e in found.take("a", None, 0.0)] == [3, 5]
    found.close()


def test_the_number_of_pending_evaluations_is_bounded(log, monkeypatch):
    monkeypatch.setattr(results, "UNTAKEN", 3)
    found = Results(log)
    found.follow("r", "a")
    found.follow("r", "b")
    for time in range(2, 10, 2):
        commit(log, "r", "a", time)
    with pytest.raises(LimitError, match="are pending"):
        found.take("b", None, 0.0)
    assert len(found.take("a", None, 0.0)) == 3


def test_a_full_queue_of_one_query_loses_no_evaluation(log, monkeypatch):
    monkeypatch.setattr(results, "UNTAKEN", 3)
    found = Results(log)
    found.follow("r", "a")
    found.follow("r", "b")
    for time in range(2, 22, 2):
        commit(log, "r", "a", time)
    commit(log, "r", "b", 22)
    with pytest.raises(LimitError, match="evaluations of a are pending"):
        found.take("b", None, 0.0)
    taken = [e.time for _ in range(4) for e in found.take("a", None, 0.0)]
    assert taken == list(range(2, 22, 2))
    assert [e.time for e in found.take("b", None, 0.0)] == [22]
