"""Single bad requests against a cluster on a real broker: each is refused where it is visible, and the
cluster goes on.
"""

from __future__ import annotations

import json
import random
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from penstock.broker import Broker, kafka_jars
from penstock.broker.java import find_java
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.errors import DataError, StorageError
from penstock.term_ids.flight_terms import FlightTerms
from support.occupations import occupations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("broker")
IRI = "http://x/s"
COUNT = f"SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
SUBJECTS = f"SELECT ?s FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
BOUND_S = 120.0


class Users:
    """What users do, by HTTP and by Kafka."""

    def __init__(self, servers: str, cluster: LocalCluster) -> None:
        self.servers, self.cluster = servers, cluster
        self._producer = Producer({"bootstrap.servers": servers, "message.max.bytes": 64 << 20})
        self._second = 100

    def ask(self, method: str, path: str, body: str | bytes = b"", /, **asked: str) -> httpx.Response:
        """Ask the active coordinator."""
        content = body if isinstance(body, bytes) else body.encode()
        deadline = time.monotonic() + BOUND_S
        while True:
            for url in self.cluster.url.split(","):
                try:
                    found = httpx.request(method, f"{url}{path}", params=asked, content=content, timeout=60)
                except httpx.TransportError:
                    continue
                if found.status_code != 503:
                    return found
            assert time.monotonic() < deadline, "no coordinator is active"
            time.sleep(0.2)

    def produce(self, topic: str, key: str | None, value: bytes | None, /, **headers: str) -> None:
        pairs = [(name, text.encode()) for name, text in headers.items()]
        self._producer.produce(f"penstock.{topic}", key=key, value=value, headers=pairs)
        assert self._producer.flush(30) == 0

    def next_second(self, subjects: int) -> int:
        """Push a second of events; return its end."""
        self._second += 1
        for i in range(subjects):
            name = random.Random(i).randbytes(60).hex()  # brokers compare what is left once it is compressed
            data = f"<urn:subject/{name}> <urn:p> <urn:o> .".encode()
            self.produce("events.s", "k", data, timestamp=str(self._second * 1_000 - 800))
        self.produce("events.s", "k", b"", heartbeat=str(self._second * 1_000))
        return self._second * 1_000

    def read(self, topic: str) -> dict[str, Any]:
        """The committed records of a topic by key; none twice."""
        settings = {"bootstrap.servers": self.servers, "group.id": "-", "isolation.level": "read_committed"}
        consumer = Consumer(settings | {"enable.partition.eof": True, "enable.auto.commit": False})
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        found: dict[str, Any] = {}
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(10)
            assert message is not None
            if message.error() is not None:
                ended += 1
                continue
            key = (message.key() or b"").decode()
            assert key not in found or topic.endswith("status"), f"{topic}: {key} twice"
            found[key] = json.loads(message.value()) if topic != "penstock.dead-letter" else message
        consumer.close()
        return found

    def wait(self, look: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + BOUND_S
        while not (found := look()):
            self.cluster.watch()
            assert time.monotonic() < deadline, f"it did not come\n{occupations(self.cluster)}"
            time.sleep(0.3)
        return found

    def starts(self) -> int:
        return sum(service.starts for service in self.cluster.services.values())


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        pytest.skip(str(error))
    folder: Path = tmp_path_factory.mktemp("refused")
    with (
        Broker(folder / "broker") as broker,
        LocalCluster(broker.bootstrap_servers, folder / "c", engines=1) as cluster,
    ):
        made = Users(broker.bootstrap_servers, cluster)
        assert made.ask("PUT", "/streams/s", json.dumps({"iri": IRI, "batch_ms": 500})).status_code == 200
        assert made.ask("PUT", "/queries/counts", COUNT).status_code == 200
        yield made


def test_a_service_shows_its_stacks_and_goes_on(users: Users) -> None:
    starts = users.starts()
    shown = occupations(users.cluster)
    assert shown.count("loop.py") >= len(users.cluster.services)
    end = users.next_second(2)
    users.wait(lambda: users.read("penstock.results").get(f"counts@{end}"))
    assert users.starts() == starts, "no service has ended"


def test_a_term_beyond_the_limit_is_a_dead_letter_and_the_dictionaries_go_on(users: Users) -> None:
    starts = users.starts()
    literal = "\\u0001" * (11 << 20)
    users.produce("events.s", "k", f'<urn:a> <urn:p> "{literal[: 54 << 20]}" .'.encode(), timestamp="100300")
    locations = users.cluster.services["coordinator-0"].settings["PENSTOCK_DICTIONARIES"].split(",")
    client = FlightTerms(locations)
    with pytest.raises(DataError, match="max_term_bytes"):
        client.encode([(3, "\x01" * (11 << 20), "urn:x:type", "")])
    answer = users.ask("POST", "/data", b'<urn:a> <urn:p> "' + b"x" * (11 << 20) + b'" .')
    assert (answer.status_code, "max_term_bytes" in answer.text) == (400, True)
    end = users.next_second(2)
    users.wait(lambda: users.read("penstock.results").get(f"counts@{end}"))
    users.wait(lambda: users.read("penstock.dead-letter"))
    client.close()
    assert users.starts() == starts, "no service has ended"


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "penstock.shards", "penstock.events.s"])
def test_internal_topics_take_no_results(users: Users, topic: str) -> None:
    answer = users.ask("PUT", "/queries/bad", COUNT, topic=topic)
    assert (answer.status_code, answer.json()["error"]) == (400, "DataError")
    users.produce("queries", f"bad-{topic}", COUNT.encode(), topic=topic)
    refused = users.wait(lambda: users.read("penstock.status").get(f"refused query bad-{topic}"))
    assert topic in refused["message"]


def test_answers_beyond_a_topics_limit_fail_their_query_alone(users: Users) -> None:
    starts = users.starts()
    assert users.ask("PUT", "/queries/own", SUBJECTS, topic="own").status_code == 200
    admin = AdminClient({"bootstrap.servers": users.servers})
    entry = ConfigEntry("max.message.bytes", "4000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "own", incremental_configs=[entry])
    [future] = admin.incremental_alter_configs([resource]).values()
    future.result()
    ends = [users.next_second(subjects) for subjects in (2, 90, 2)]
    own = users.wait(lambda: found if f"own@{ends[-1]}" in (found := users.read("own")) else None)
    assert ["error" in own[f"own@{end}"] for end in ends] == [False, True, False]
    assert "max.message.bytes" in own[f"own@{ends[1]}"]["error"]
    users.wait(lambda: "max.message.bytes" in (users.ask("GET", "/queries/own").json()["error"] or ""))
    assert users.starts() == starts, "no service has ended"


def test_results_topics_that_are_deleted_fail_their_queries_alone(users: Users) -> None:
    """Each topic is deleted between two transactions, or in the middle of one."""
    starts, admin = users.starts(), AdminClient({"bootstrap.servers": users.servers})
    topics = [f"deleted-{number}" for number in range(5)]
    for topic in topics:
        assert users.ask("PUT", f"/queries/{topic}", SUBJECTS, topic=topic).status_code == 200
    ends = [users.next_second(2)]
    for topic in topics:
        users.wait(lambda topic=topic: f"{topic}@{ends[0]}" in users.read(topic))
    for topic in topics:
        ends += [users.next_second(2) for _ in range(3)]
        admin.delete_topics([topic])[topic].result()
        ends += [users.next_second(2) for _ in range(3)]
        last = f"{topic}@{ends[-1]}"
        users.wait(
            lambda last=last: "cannot be written" in users.read("penstock.results").get(last, {}).get("error", "")
        )
        users.wait(lambda topic=topic: topic in (users.ask("GET", f"/queries/{topic}").json()["error"] or ""))
    results = users.wait(lambda: found if f"counts@{ends[-1]}" in (found := users.read("penstock.results")) else None)
    assert all("error" not in results[f"counts@{end}"] for end in ends)
    for topic in topics:
        assert users.ask("DELETE", f"/queries/{topic}").status_code == 204
    assert users.starts() == starts, "no service has ended"


def test_the_results_topic_is_made_again_where_it_was_deleted(users: Users) -> None:
    starts, admin = users.starts(), AdminClient({"bootstrap.servers": users.servers})
    first = users.next_second(2)
    users.wait(lambda: f"counts@{first}" in users.read("penstock.results"))
    admin.delete_topics(["penstock.results"])["penstock.results"].result()
    ends = [users.next_second(2) for _ in range(3)]

    def results() -> Any:
        there = "penstock.results" in admin.list_topics(timeout=10).topics
        found = users.read("penstock.results") if there else {}
        return found if f"counts@{ends[-1]}" in found else None

    found = users.wait(results)
    assert all("error" not in found[f"counts@{end}"] for end in ends)
    assert users.starts() == starts, "no service has ended"


def test_a_coordinator_replays_no_request_after_the_brokers_forgot_its_groups(users: Users) -> None:
    users.produce("queries", "stopped", SUBJECTS.encode())
    users.wait(lambda: "stopped" in users.ask("GET", "/queries").json())
    assert users.ask("DELETE", "/queries/stopped").status_code == 204
    before = users.ask("GET", "/queries").json()
    for name in [name for name in users.cluster.services if name.startswith("coordinator")]:
        users.cluster.kill(name)
    admin = AdminClient({"bootstrap.servers": users.servers})
    groups = [group.group_id for group in admin.list_consumer_groups().result().valid]
    ours = [group for group in groups if "requests" in group or "coordinator" in group]

    def deleted() -> bool:
        for future in admin.delete_consumer_groups(ours).values() if ours else ():
            if future.exception() is not None:
                return False  # its members are not dead yet for the brokers
        return True

    deadline = time.monotonic() + BOUND_S
    while not deleted() and time.monotonic() < deadline:
        time.sleep(0.5)
    users.cluster.watch()
    users.produce("queries", "after", COUNT.encode())
    users.wait(lambda: "after" in users.ask("GET", "/queries").json())
    after = users.ask("GET", "/queries").json()
    assert {name: query["number"] for name, query in after.items() if name != "after"} == {
        name: query["number"] for name, query in before.items()
    }
