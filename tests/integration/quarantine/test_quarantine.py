"""One record of an internal topic that cannot be read: services stop and say so; set aside, nothing else is lost."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.cli.cluster.quarantine import run
from penstock.errors import DataError
from penstock.ingest.refused_records import read_refused
from penstock.log import START, MemoryLog, Partition, Record, Topic, TransientError
from penstock.log.faults import NoFaults, Point
from penstock.log.topics import TopicNames
from penstock.quarantine import InternalRecords, Place, UnreadableRecordError, listed
from penstock.quarantine.kinds import SHARDS, TUPLES
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.wire import Heartbeat, QueryStop, StreamDrop, Tuples, encode
from support.small_cluster import SmallCluster

GARBAGE = b"nine byte"
IRI = "http://x/s"
QUERY = "REGISTER QUERY n AS SELECT (COUNT(*) AS ?n) FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }"


def line(i: int) -> str:
    return f"<http://x/{i}> <http://x/p> <http://x/o> ."


def made() -> SmallCluster:
    cluster = SmallCluster()
    cluster.coordinator.declare(IRI, name="s", batch_ms=1_000, lateness_ms=0, timing="all")
    cluster.coordinator.register("n", QUERY)
    cluster.run()
    for second in range(1, 4):
        cluster.push("s", 1_000 * second + 500, line(second))
    cluster.run()
    return cluster


def restart(cluster: SmallCluster) -> None:
    """Every service anew, as a supervisor does it."""
    cluster.terms = DictionaryService(cluster.log, cluster.topics)
    cluster.adaptor.close()
    cluster.adaptor = Adaptor(cluster.log, cluster.topics.names, cluster.terms, cluster.topics.names.adaptor_group)
    cluster.dispatcher = cluster.start_dispatcher()
    cluster.kill("e0")
    cluster.start_engine("e0")
    cluster.restart_coordinator()  # and all steps


def topics(cluster: SmallCluster) -> dict[str, tuple[str, bytes | None]]:
    """Internal topics by what they are called, and a key that their records have."""
    names = cluster.topics.names
    return {
        "tuples": (names.tuples("s"), None),
        "shards": (names.shards, None),
        "dictionary": (names.dictionary, b"a key"),
        "control": (names.control, b"state"),
        "progress": (cluster.topics.progress, b"bucket"),
        "dispatcher": (names.dispatcher, b"topics s"),
    }


@pytest.fixture(scope="module")
def expected() -> list[tuple[int, str]]:
    """The answers of a cluster in which nothing happens."""
    cluster = made()
    finish(cluster)
    return counts(cluster)


def finish(cluster: SmallCluster) -> None:
    for second in range(4, 8):
        cluster.push("s", 1_000 * second + 500, line(second))
    cluster.run()


def counts(cluster: SmallCluster) -> list[tuple[int, str]]:
    return [(found["time"], found["results"]["bindings"][0]["n"]["value"]) for found in cluster.results()]


@pytest.mark.parametrize(
    "value", [GARBAGE, None, encode(Heartbeat("store", "s", "0", 1))], ids=["bytes", "none", "kind"]
)
@pytest.mark.parametrize("what", ["tuples", "shards", "dictionary", "control", "progress", "dispatcher"])
def test_a_record_that_cannot_be_read_stops_services_until_it_is_set_aside(expected, what, value):
    cluster = made()
    topic, key = topics(cluster)[what]
    if value is None and key is not None and what != "dictionary":
        pytest.skip("a deletion, in a compacted topic")
    place = Place(topic, 0, cluster.log.spans([Partition(topic)])[Partition(topic)].end)
    cluster.log.writer().append([Record(topic, value, key)])
    for _ in range(3):
        with pytest.raises(UnreadableRecordError) as caught:
            restart(cluster)
        assert caught.value.place == place
        said = str(caught.value)
        assert f"topic {topic}, partition 0, offset {place.offset}" in said
        assert f"penstock quarantine {topic}:0:{place.offset}" in said
        assert "\n" not in said
    names = cluster.topics.names
    assert run(cluster.log, names, str(place), show=False)[0].startswith(f"{place} is in quarantine: ")
    restart(cluster)
    finish(cluster)
    assert counts(cluster) == expected
    [letter] = [read_refused(m) for m in cluster.log.reader({Partition(names.dead_letter): START}).poll()]
    assert letter.data == (value or b"")
    assert (letter.topic, letter.partition, letter.offset) == place


def test_garbage_among_heartbeats_is_ignored(expected):
    cluster = made()
    for value in (GARBAGE, encode(StreamDrop(1, "http://x/s")), None):
        cluster.log.writer().append([Record(cluster.topics.heartbeats, value, b"e0")])
    finish(cluster)
    assert counts(cluster) == expected
    assert cluster.coordinator.ignored == 2


def garbage(topic: str = "penstock.shards", partitions: int = 2) -> tuple[MemoryLog, TopicNames]:
    log = MemoryLog()
    log.create([Topic(topic, partitions), Topic("penstock.dead-letter"), Topic("users")])
    good = encode(QueryStop(1, "q"))
    log.transactional("w").commit([Record(topic, value, None, 1) for value in (good, GARBAGE, good)])
    return log, TopicNames()


def test_the_command_is_idempotent_and_lists_what_it_has_done():
    log, names = garbage()
    assert run(log, names, None, show=True) == ["no record is in quarantine"]
    first = run(log, names, "penstock.shards:1:1", show=False)
    assert first[0].startswith("penstock.shards:1:1 is in quarantine: 9 bytes are not a record")
    assert run(log, names, "penstock.shards:1:1", show=False) == ["penstock.shards:1:1 is in quarantine already"]
    assert len(log.reader({Partition(names.dead_letter): START}).poll()) == 1
    [shown] = run(log, names, None, show=True)
    assert shown.startswith("penstock.shards:1:1  9 bytes  9 bytes are not a record")


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("penstock.shards", "TOPIC:PARTITION:OFFSET"),
        ("penstock.shards:1:-1", "TOPIC:PARTITION:OFFSET"),
        ("penstock.shards:1:1:1", "TOPIC:PARTITION:OFFSET"),
        ("penstock.shards:2:0", "no partition 2"),
        ("penstock.shards:0:0", "no record"),
        ("penstock.shards:1:3", "no record"),  # a transaction's marker
        ("penstock.shards:1:99", "no record"),
        ("penstock.tuples.none:0:0", "no partition 0"),
        ("penstock.shards:1:0", "is readable"),
        ("users:0:0", "not an internal topic"),
        ("other.shards:1:1", "not an internal topic"),
        (None, "name a record"),
    ],
)
def test_what_cannot_be_set_aside_is_an_error_that_says_why(place, why):
    log, names = garbage()
    with pytest.raises(DataError, match=why):
        run(log, names, place, show=False)
    assert listed(log, names) == []


def test_a_record_that_can_be_read_is_never_passed_over():
    """Others may have applied it: whoever writes its place into the quarantine topic changes nothing."""
    log, names = garbage()
    log.create([Topic(names.quarantine, 1, "compact")])
    log.writer().append(
        [Record(names.quarantine, b"{}", b"penstock.shards:1:0"), Record(names.quarantine, GARBAGE, b"x")]
    )
    records, [good, bad, _] = InternalRecords(log, names), log.reader({Partition(names.shards, 1): START}).poll()
    assert records.read(good, SHARDS) == QueryStop(1, "q")
    with pytest.raises(UnreadableRecordError):
        records.read(bad, SHARDS)


def test_a_quarantine_that_cannot_be_consulted_is_no_transient_error():
    """The reader has passed the record: a step that is tried again would go on behind it."""

    class Unavailable(NoFaults):
        def at(self, point: Point, owner: str) -> None:
            if point is Point.POLL:
                raise TransientError("brokers are unavailable")

    log, names = garbage()
    [_, bad, _] = log.reader({Partition(names.shards, 1): START}).poll()
    log.create([Topic(names.quarantine, 1, "compact")])
    log.faults = Unavailable()
    with pytest.raises(UnreadableRecordError, match="brokers are unavailable"):
        InternalRecords(log, names).read(bad, SHARDS)


def test_columns_of_unequal_lengths_are_no_record():
    none = np.empty(0, np.int64)
    record = Tuples("http://x/s", 0, none, np.ones(1, np.int64), none, none, none, none)
    log, names = garbage()
    log.writer().append([Record(names.shards, encode(record), None, 0)])
    [message] = log.reader({Partition(names.shards): START}).poll()
    with pytest.raises(UnreadableRecordError, match="columns"):
        InternalRecords(log, names).read(message, TUPLES)
