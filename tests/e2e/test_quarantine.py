"""One garbage record in each internal topic of a running cluster: who stops, with which line; `penstock quarantine`;
and that nothing else is lost (docs/operations.md, "A record that cannot be read").
"""

from __future__ import annotations

import time
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.cluster_load import Load, small

from e2e.test_poison_records import quarantine
from penstock.client import Client
from penstock.log import Partition, Record
from penstock.replication.cluster_topics import ClusterTopics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.cli.up import LocalCluster

pytestmark = pytest.mark.xdist_group("broker")
GARBAGE = b"nine byte"
BOUND_S = 180.0


class Attacked:
    """A cluster under load, and its internal topics."""

    def __init__(self, load: Load, cluster: LocalCluster, topics: ClusterTopics) -> None:
        self.load, self.cluster, self.names = load, cluster, load.names
        self.bootstrap_servers = cluster.bootstrap_servers
        self._writer = load.log.writer()
        self.topics = {
            "tuples": (load.names.tuples("s"), 0, {"dispatcher-0"}),
            "shards": (load.names.shards, 1, {"engine-0", "store-0"}),
            "dictionary": (load.names.dictionary, 0, {"dictionary-0", "dictionary-1"}),
            "control": (load.names.control, 0, {"adaptor-0", "dispatcher-0"}),
            "progress": (topics.progress, 1, {"engine-0", "store-0"}),
            "dispatcher": (load.names.dispatcher, 0, {"dispatcher-0"}),
        }
        self.heartbeats = topics.heartbeats

    def append(self, topic: str, number: int) -> str:
        """Write a garbage record; return its place."""
        partition = Partition(topic, number)
        before = self.load.log.spans([partition])[partition].end
        self._writer.append([Record(topic, GARBAGE, b"garbage", number)])
        reader = self.load.log.reader({partition: before})
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for message in reader.poll(100, 0.2):
                if message.value == GARBAGE:
                    reader.close()
                    return f"{topic}:{number}:{message.offset}"
        raise AssertionError("the record is not there")

    def failed(self, place: str) -> dict[str, dict[str, Any]]:
        """The last line of each service that ended at a record."""
        found = {}
        for name, service in self.cluster.services.items():
            for record in self.cluster.supervisor.records(service):
                if record.get("event") == "failed":
                    assert record.get("record") in (place, None), (name, record)
                    found |= {name: record} if record.get("record") == place else {}
                    break
        return found

    def wait(self, condition: Any, what: str) -> Any:
        deadline = time.monotonic() + BOUND_S
        while not (found := condition()):
            assert time.monotonic() < deadline, what
            time.sleep(0.2)
        return found

    def go_on(self) -> None:
        """Start what has ended, until everything runs and answers."""

        def whole() -> bool:
            self.cluster.watch()
            services = self.cluster.services.values()
            return all(service.running and time.monotonic() > service.started_s + 2 for service in services)

        self.wait(whole, "all services run")


@pytest.fixture
def attacked(broker, topic_prefix, tmp_path) -> Iterator[Attacked]:
    load = Load(broker.bootstrap_servers, topic_prefix)
    with ExitStack() as stack:
        cluster = stack.enter_context(
            small(broker.bootstrap_servers, topic_prefix, tmp_path / "c", stores=1, dictionaries=2)
        )
        client = stack.enter_context(Client(broker.bootstrap_servers, prefix=topic_prefix, url=cluster.url))
        load.prepare(client)
        yield Attacked(load, cluster, ClusterTopics(load.names, cluster.shards, cluster.buckets))


@pytest.mark.timeout(1_200)
def test_garbage_in_each_internal_topic_stops_its_readers_until_it_is_in_quarantine(attacked):
    attacked.load.push(20, 2.0)
    for topic, number, readers in attacked.topics.values():
        place = attacked.append(topic, number)
        attacked.load.push(10, 1.0)
        if topic == attacked.names.dispatcher:
            attacked.cluster.kill("dispatcher-0")  # it reads its own state at its start alone
        stopped = {}

        def met(place=place, readers=readers, stopped=stopped, topic=topic) -> bool:
            attacked.cluster.watch()
            stopped.update(attacked.failed(place))
            return bool(stopped) if topic == attacked.names.dictionary else stopped.keys() >= readers

        attacked.wait(met, f"{readers} stop at {place}")
        for name, line in stopped.items():
            assert name in readers | {"coordinator-0"}, "no other service stops"
            assert line["command"] == f"penstock quarantine {place}"
            topic_name, partition, offset = place.split(":")
            where = f"topic {topic_name}, partition {partition}, offset {offset} cannot be read"
            assert where in line["reason"]
            assert line["command"] in line["reason"]
        assert f"{place} is in quarantine: 9 bytes" in quarantine(attacked, place)
        attacked.go_on()
        attacked.load.push(10, 1.0)
    listed = quarantine(attacked, "--list").splitlines()
    assert len(listed) == len(attacked.topics)
    assert [letter.value.endswith(GARBAGE) for letter in attacked.load.letters()] == [True] * len(attacked.topics)
    attacked.load.check(attacked.cluster)


@pytest.mark.timeout(600)
def test_garbage_heartbeats_are_skipped_with_a_warning_and_stop_nothing(attacked):
    attacked.load.push(10, 1.0)
    before = {name: service.starts for name, service in attacked.cluster.services.items()}
    for _ in range(100):
        attacked.append(attacked.heartbeats, 0)
    attacked.load.push(20, 2.0)

    def warned() -> bool:
        records = attacked.cluster.supervisor.records(attacked.cluster.services["coordinator-0"])
        return any(record["event"].startswith(("ignoring an unreadable record", "skipping")) for record in records)

    attacked.wait(warned, "a warning")
    metrics = urllib.request.urlopen(f"{attacked.cluster.url}/metrics", timeout=10).read().decode()
    ignored = [line for line in metrics.splitlines() if line.startswith("penstock_ignored_records_total")]
    assert float(ignored[0].split()[-1]) == 100
    attacked.load.check(attacked.cluster)
    assert {name: service.starts for name, service in attacked.cluster.services.items()} == before
