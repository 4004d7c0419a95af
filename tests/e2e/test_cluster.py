"""A cluster of processes on a real broker, some of them killed: no result lost, doubled or different."""

from __future__ import annotations

import pytest

from penstock.broker import kafka_jars
from penstock.broker.java import find_java
from penstock.cli.cluster import demo_cluster
from penstock.errors import StorageError


@pytest.fixture
def machine():
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        pytest.skip(str(error))


@pytest.mark.xdist_group("broker")
@pytest.mark.usefixtures("machine")
def test_three_services_are_killed_and_every_result_comes_once(tmp_path):
    verdict = demo_cluster.demo_cluster(hours=6, kills=3, seed=1, directory=tmp_path)
    assert sum(verdict.killed.values()) == 3
    assert verdict.good, str(verdict)


def test_the_verdict_tells_lost_doubled_and_different_apart():
    line = {"query": "q", "time": 1, "snapshot": 3, "attempt": 1, "results": {"bindings": [{"x": 1}, {"x": 2}]}}
    same = line | {"snapshot": 9, "attempt": 2, "results": {"bindings": [{"x": 2}, {"x": 1}]}}
    other = line | {"results": {"bindings": []}}
    expected = {("q", 1): demo_cluster.content(line), ("q", 2): "never comes"}
    verdict = demo_cluster.Verdict(expected)
    verdict.take(same)
    assert "1 lost, 0 doubled, 0 different" in str(verdict)
    verdict.take(other)
    assert "1 lost, 1 doubled, 1 different" in str(verdict)
    assert not verdict.good
