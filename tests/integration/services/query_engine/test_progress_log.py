"""A bucket's progress is records of its groups: no record grows with groups or answers; readers get what was
written.
"""

from __future__ import annotations

import random

import pytest

from penstock.errors import StorageError
from penstock.log import START, MemoryLog, Partition, Record, Topic
from penstock.log.topics import TopicNames
from penstock.quarantine import InternalRecords, UnreadableRecordError
from penstock.replication import progress_log
from penstock.replication.progress_log import BucketState, GroupState, ProgressView, ProgressWriter
from penstock.wire import Heartbeat, ProgressPart, encode
from support.small_cluster import SmallCluster

IRI = "http://x/s"


@pytest.fixture
def log():
    made = MemoryLog()
    made.create([Topic("progress", 1, "compact", max_bytes=10_000)])
    return made


def read(log, *, states: bool = True) -> ProgressView:
    view = ProgressView(InternalRecords(log, TopicNames()), states=states)
    for message in log.reader({Partition("progress"): START}).poll(100_000):
        view.feed(message)
    return view


def noise(rng: random.Random, size: int) -> str:
    return rng.randbytes(size).hex()


def test_any_sequence_of_commits_is_read_as_the_last_one(log, monkeypatch):
    monkeypatch.setattr(progress_log, "PART_BYTES", 1_000)
    rng = random.Random(5)
    writer = ProgressWriter("progress", 0, {})
    groups: dict[int, GroupState] = {}
    changed: set[int] = set()
    for step in range(120):
        for number in rng.sample(range(8), 3):
            if number in groups and rng.random() < 0.2:
                del groups[number]
                continue
            state = noise(rng, rng.choice([0, 10, 2_000, 9_000]))
            groups[number] = GroupState(number, step, {IRI: step}, None, state or None, None)
            changed.add(number)
        said = BucketState(0, 1, step, tuple(groups.values()))
        records = writer.records(said, changed)
        if rng.random() < 0.1:
            continue  # it was aborted: the next one has these changes, too
        log.transactional("w").commit(records)
        writer.committed()
        changed.clear()
        if rng.random() < 0.2:
            log.compact("progress", rng.choice([0, 86_400_000]))
        whole = read(log).whole()
        assert whole is not None
        assert (whole.step, {p.group: p for p in whole.groups}) == (step, groups)
        light = read(log, states=False)
        assert {n: p.last_ms for n, p in light.groups.items()} == {n: p.last_ms for n, p in groups.items()}
        if rng.random() < 0.2:  # another engine goes on
            writer = ProgressWriter("progress", 0, read(log).parts())


def test_a_state_that_lacks_a_part_is_an_error(log, monkeypatch):
    monkeypatch.setattr(progress_log, "PART_BYTES", 500)
    said = BucketState(0, 1, 1, (GroupState(1, 5, {}, noise(random.Random(1), 2_000)),))
    log.transactional("w").commit(ProgressWriter("progress", 0, {}).records(said, {1}))
    log.writer().append([Record("progress", None, b"state 1 1")])
    with pytest.raises(StorageError, match="lacks parts"):
        read(log).whole()


def test_a_state_of_which_a_part_is_damaged_is_an_error(log):
    said = BucketState(0, 1, 1, (GroupState(1, 5, {}, "[]"),))
    log.transactional("w").commit(ProgressWriter("progress", 0, {}).records(said, {1}))
    log.writer().append([Record("progress", encode(ProgressPart(1, 0, 1, b"no state")), b"state 1 0")])
    with pytest.raises(StorageError, match="the state of group 1 is damaged"):
        read(log).whole()


@pytest.mark.parametrize("key", [b"group 1", b"state 1 0", b"bucket"])
@pytest.mark.parametrize("value", [b"nine byte", encode(Heartbeat("store", "s", "0", 1))])
def test_a_record_in_quarantine_does_not_hide_the_one_before_of_its_key(log, key, value):
    said = BucketState(0, 1, 1, (GroupState(1, 5, {IRI: 5}, "[]"),))
    log.transactional("w").commit(ProgressWriter("progress", 0, {}).records(said, {1}))
    end = log.spans([Partition("progress")])[Partition("progress")].end
    log.writer().append([Record("progress", value, key)])
    with pytest.raises(UnreadableRecordError, match="penstock quarantine"):
        read(log)
    names = TopicNames()
    log.create([Topic(names.quarantine, 1, "compact")])
    log.writer().append([Record(names.quarantine, b"{}", f"progress:0:{end}".encode())])
    assert read(log).whole() == said


def test_deletions_with_keys_that_no_engine_writes_have_no_effect(log):
    said = BucketState(0, 1, 1, (GroupState(1, 5, {}, "[]"),))
    log.transactional("w").commit(ProgressWriter("progress", 0, {}).records(said, {1}))
    log.writer().append([Record("progress", None, key) for key in (b"group", b"group x", b"state 1", b"\xff", None)])
    assert read(log).whole() == said


def test_predecessors_and_many_groups_fit_in_small_records(monkeypatch):
    """One record of all of them was refused for good: each engine in turn ended with it."""
    monkeypatch.setattr(progress_log, "PART_BYTES", 1_000)
    cluster = SmallCluster(engines=2, buckets=1)
    cluster.log.configure(cluster.topics.progress, 2_500)
    cluster.coordinator.declare(IRI, "s", batch_ms=500)
    window = f"FROM STREAM <{IRI}> [RANGE 10s STEP 1s]"
    for i in range(40):
        cluster.coordinator.register(
            f"q{i}", f"SELECT (COUNT(*) AS ?n) {window} WHERE {{ ?s <urn:p{i}> ?o . ?s ?b{i} ?o }}"
        )
    cluster.coordinator.register("i", f"REGISTER ISTREAM i AS SELECT ?s {window} WHERE {{ ?s ?p ?o }}")
    cluster.advance("s", 100_000)
    cluster.run()
    rng = random.Random(3)
    for i in range(200):
        cluster.push("s", 100_200, f"<urn:{noise(rng, 30)}> <urn:p> <urn:o{i}> .")
    cluster.advance("s", 101_000)
    cluster.run()
    cluster.kill("e0")
    cluster.kill("e1")
    cluster.start_engine("e2")
    cluster.run(60)
    cluster.push("s", 101_200, "<urn:new> <urn:p> <urn:o> .")
    cluster.advance("s", 102_000)
    cluster.run(60)
    found = {line["time"]: line for line in cluster.results() if line["query"] == "i"}
    assert len(found[101_000]["results"]["bindings"]) == 200
    assert [row["s"]["value"] for row in found[102_000]["results"]["bindings"]] == ["urn:new"]
    assert max(len(m.value or b"") for m in cluster.messages(cluster.topics.progress)) < 2_500
    cluster.close()
