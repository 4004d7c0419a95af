"""Result records in Avro from a cluster of processes on a real broker: fastavro decodes what each row of each answer is,
while query engines are killed and the schema registry is down; and a sink of Kafka Connect writes these rows to a file.

The registry is `tests/support/schema_registry.py`. With PENSTOCK_TEST_APICURIO, the URL of an Apicurio Registry 2, the
test of Kafka Connect uses that one.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

from penstock.client import Client
from penstock.errors import DataError
from penstock.log import START, Partition, Record
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from support.avro_rows import row_of
from support.cluster_load import IRI, SETTINGS, Load, small
from support.connect import FileSink
from support.schema_registry import registry

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.xdist_group("broker")
RANGE, STEP = 1_000, 500
WINDOW = f"FROM STREAM <{IRI}> [RANGE 1s STEP 500ms]"
QUERY = f"REGISTER QUERY counts AS SELECT ?thing (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?thing <http://x/p> ?v }} GROUP BY ?thing"
SET = f"REGISTER QUERY things (?thing) AS SELECT ?v {WINDOW} WHERE {{ ?thing <http://x/p> ?v }}"
BOUND_S = 300.0


class Rows:
    """The rows in a topic, by evaluation, as fastavro decodes them."""

    def __init__(self, log: KafkaLog, topic: str, schema_of: Callable[[int], str]) -> None:
        self._reader = log.reader({Partition(topic): START})
        self._schema_of = schema_of
        self.found: dict[tuple[str, int], list[dict[str, Any]]] = {}
        self.keys: list[bytes] = []

    def read(self) -> None:
        while messages := self._reader.poll(1_000, 0.1):
            for message in messages:
                row = row_of(message.value, lambda number: json.loads(self._schema_of(number)))
                assert ("result_format", b"avro") in message.headers
                self.keys.append(message.key)
                self.found.setdefault((row.get("_member", row["_query"]), row["_time"]), []).append(row)

    def close(self) -> None:
        self._reader.close()


def wait(good: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while not good():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_rows_of_queries_and_sets_while_engines_are_killed_and_the_registry_is_down(
    broker, topic_prefix, tmp_path, monkeypatch
):
    servers, names = broker.bootstrap_servers, TopicNames(topic_prefix)
    load = Load(servers, topic_prefix, queries={})
    counts, things = f"{topic_prefix}.results.counts", f"{topic_prefix}.results.things"
    with registry() as schemas:
        monkeypatch.setenv("PENSTOCK_SCHEMA_REGISTRY", schemas.url)
        with (
            small(servers, topic_prefix, tmp_path, engines=2) as cluster,
            Client(servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
        ):
            log = KafkaLog(servers)
            client.declare_stream(IRI, "s", **SETTINGS)
            query = client.register(QUERY, topic=counts, result_format="avro")
            members = [{"thing": "http://x/0"}, {"thing": "http://x/3"}]
            client.register_set(SET, members, report="every", key="thing", topic=things, result_format="avro")
            given = {counts: Rows(log, counts, schemas.schema), things: Rows(log, things, schemas.schema)}
            schemas.down = True
            log.writer().append([Record(names.queries, QUERY.replace("counts", "later").encode(), b"later", 0, (("result_format", b"avro"),))])  # fmt: skip
            engines = sorted(name for name in cluster.services if "engine" in name)
            for engine in engines:
                load.push(150, 2.0)
                cluster.kill(engine)
                load.push(50, 1.0)
                cluster.watch()
            last = load.end() // STEP * STEP - STEP

            def complete() -> bool:
                for rows in given.values():
                    rows.read()
                return all((who, last) in rows.found for rows in given.values() for who in members_of(rows))

            def members_of(rows: Rows) -> list[str]:
                return ["counts"] if rows is given[counts] else ["http://x/0", "http://x/3"]

            wait(complete, "all evaluations arrive")
            wait(lambda: "status 503" in statuses(log, names.status), "the registration by topic is refused")
            assert "later" not in client.queries
            with pytest.raises(DataError, match="are in Avro"):
                poll_until_error(query)
            schemas.down = False
            client.register(QUERY.replace("counts", "later"), topic=counts, result_format="avro")
    sent = [at for at, _ in load.sent]
    for rows in given.values():
        assert len(set(rows.keys)) == len(rows.keys), "a row is there twice"
        for (who, at), parts in rows.found.items():
            assert [row["_row"] for row in parts] == list(range(max(parts[0]["_rows"], 1))), (who, at)
            assert parts[0]["_error"] is None
        rows.close()
    check_counts(given[counts].found, sent)
    check_things(given[things].found, sent)
    assert schemas.subjects() == {f"{counts}-value", f"{things}-value"}


@pytest.mark.long  # it downloads 37 MB
def test_a_sink_of_kafka_connect_writes_the_rows(broker, topic_prefix, tmp_path, monkeypatch):
    servers = broker.bootstrap_servers
    load = Load(servers, topic_prefix, queries={})
    topics = [f"{topic_prefix}.results.counts", f"{topic_prefix}.results.things"]
    with registry() as schemas:
        apicurio = os.environ.get("PENSTOCK_TEST_APICURIO")
        url = schemas.url if apicurio is None else f"{apicurio}/apis/ccompat/v7"
        monkeypatch.setenv("PENSTOCK_SCHEMA_REGISTRY", url)
        with (
            small(servers, topic_prefix, tmp_path / "cluster", engines=1, stores=1) as cluster,
            Client(servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
        ):
            log = KafkaLog(servers)
            client.declare_stream(IRI, "s", **SETTINGS)
            client.register(QUERY, topic=topics[0], result_format="avro")
            client.register_set(SET, [{"thing": "http://x/0"}], key="thing", topic=topics[1], result_format="avro")
            load.push(300, 2.0)
            last = load.end() // STEP * STEP - STEP
            given = [Rows(log, topic, lambda number: fetched_schema(url, number)) for topic in topics]

            def complete() -> bool:
                for rows in given:
                    rows.read()
                return ("counts", last) in given[0].found and any(at > last - 2_000 for _, at in given[1].found)

            wait(complete, "all evaluations arrive")
        expected = [row for rows in given for parts in rows.found.values() for row in parts]
        with FileSink(tmp_path, servers, topics, f"{apicurio or schemas.url}/apis/registry/v2") as sink:
            wait(lambda: len(sink.lines()) >= len(expected), "the sink writes all rows")
            lines = sink.lines()
    assert len(expected) > 50
    assert sorted(lines) == sorted(map(struct_of, expected))


def fetched_schema(url: str, number: int) -> str:
    with urllib.request.urlopen(f"{url}/schemas/ids/{number}") as response:
        return str(json.load(response)["schema"])


def struct_of(row: dict[str, Any]) -> str:
    """Return the text of a row as a Struct of Kafka Connect, without null fields."""
    return "Struct{" + ",".join(f"{name}={value}" for name, value in row.items() if value is not None) + "}"


def statuses(log: KafkaLog, topic: str) -> str:
    """Return the text of all records of the status topic."""
    reader = log.reader({Partition(topic): START})
    found = []
    while messages := reader.poll(1_000, 0.5):
        found += [message.value.decode() for message in messages if message.value]
    reader.close()
    return "\n".join(found)


def poll_until_error(query: Any) -> None:
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        query.poll(timeout_s=0.5)


def times_of(found: dict[tuple[str, int], Any], who: str) -> list[int]:
    times = sorted(time for name, time in found if name == who)
    assert times == list(range(times[0], times[-1] + STEP, STEP)), f"{who}: lost"
    return times


def check_counts(found: dict[tuple[str, int], list[dict[str, Any]]], sent: list[int]) -> None:
    times = times_of(found, "counts")
    for at in times:
        if at - RANGE < times[0]:
            continue
        inside = [event for event in sent if at - RANGE < event <= at]
        expected = {f"http://x/{n}": sum(event % 5 == n for event in inside) for n in range(5)}
        rows = {row["thing"]: row["n"] for row in found["counts", at] if row["_rows"]}
        assert rows == {thing: count for thing, count in expected.items() if count}, at


def check_things(found: dict[tuple[str, int], list[dict[str, Any]]], sent: list[int]) -> None:
    for number in (0, 3):
        who = f"http://x/{number}"
        times = times_of(found, who)
        for at in times:
            if at - RANGE < times[0]:
                continue
            values = sorted(int(row["v"]) for row in found[who, at] if row["_rows"])
            assert values == [event for event in sent if at - RANGE < event <= at and event % 5 == number], at
