"""A bucket's progress is records of its groups: no record grows with groups or answers; readers get what was
written.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

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
    groups: dict[int, GroupState] = {}  # with all pieces of their answers
    earlier: Counter[int] = Counter()  # how many of these pieces the partition contains
    changed: set[int] = set()
    for step in range(200):
        for number in rng.sample(range(8), 3):
            if number in groups and rng.random() < 0.2:
                del groups[number], earlier[number]
                continue
            state = noise(rng, rng.choice([0, 10, 2_000, 9_000]))
            if rng.random() < 0.2:
                earlier[number] = 0
            answers = groups[number].answers[: earlier[number]] if number in groups else ()
            answers += tuple(noise(rng, rng.choice([0, 10, 3_000])) for _ in range(rng.choice([0, 1, 1, 1, 2])))
            groups[number] = GroupState(number, step, {IRI: step}, None, state or None, None, answers=answers)
            changed.add(number)
        written = [replace(g, answers=g.answers[earlier[n] :], earlier=earlier[n]) for n, g in groups.items()]
        records = writer.records(BucketState(0, 1, step, tuple(written)), changed)
        if rng.random() < 0.1:
            continue  # it was aborted: the next one has these changes, too
        log.transactional("w").commit(records)
        writer.committed()
        changed.clear()
        earlier = Counter({number: len(group.answers) for number, group in groups.items()})
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


PIECES = ("[]", noise(random.Random(2), 2_000), "[2]")


def commit(log, writer: ProgressWriter, step: int, answers: tuple[str, ...], earlier: int = 0) -> list[Record]:
    """Commit the answers of group 1, and return the records."""
    records = writer.records(BucketState(0, 1, step, (GroupState(1, step, {}, answers=answers, earlier=earlier),)), {1})
    log.transactional("w").commit(records)
    writer.committed()
    return records


def answers_in(log) -> tuple[str, ...]:
    whole = read(log).whole()
    assert whole is not None
    return whole.groups[0].answers


def test_changes_are_added_to_the_base_and_a_new_base_replaces_both(log, monkeypatch):
    monkeypatch.setattr(progress_log, "PART_BYTES", 500)
    writer = ProgressWriter("progress", 0, {})
    commit(log, writer, 1, PIECES[:1])
    changed = commit(log, writer, 2, PIECES[1:2], 1)
    assert answers_in(log) == PIECES[:2]
    assert {b"answer 1 1 0"}.isdisjoint(record.key for record in changed), "the base is not written again"
    writer.records(BucketState(0, 1, 3, (GroupState(1, 3, {}, answers=("rejected",), earlier=2),)), {1})
    commit(log, writer, 3, (), 2)
    commit(log, writer, 4, PIECES[2:], 2)
    assert answers_in(log) == PIECES
    based = commit(log, writer, 5, ("[3]",))
    assert answers_in(log) == ("[3]",)
    deleted = [record.key for record in based if record.value is None]
    parts = sum((record.key or b"").startswith(b"answer 1 2 ") for record in changed)
    assert parts > 1
    assert sorted(deleted) == sorted([b"answer 1 1 0", *(b"answer 1 2 %d" % i for i in range(parts)), b"answer 1 3 0"])
    log.compact("progress", 86_400_000)
    assert answers_in(log) == ("[3]",)
    commit(log, ProgressWriter("progress", 0, read(log).parts()), 6, ("[4]",), 1)
    assert answers_in(log) == ("[3]", "[4]")
    commit(log, writer := ProgressWriter("progress", 0, read(log).parts()), 7, ())
    assert answers_in(log) == ()
    with pytest.raises(AssertionError, match="continues 1 of 0 pieces"):
        commit(log, writer, 8, ("[5]",), 1)


@pytest.mark.parametrize("key", [b"answer 1 1 0", b"answer 1 2 1", b"answer 1 3 0", b"state 1 0"])
def test_answers_that_lack_a_part_are_an_error(log, monkeypatch, key):
    monkeypatch.setattr(progress_log, "PART_BYTES", 500)
    writer = ProgressWriter("progress", 0, {})
    commit(log, writer, 1, PIECES)
    assert answers_in(log) == PIECES
    log.writer().append([Record("progress", None, key)])
    with pytest.raises(StorageError, match=r"(an answer|the state) of group 1 lacks parts"):
        read(log).whole()


def test_an_earlier_state_does_not_read_the_answers_of_a_later_one(log):
    """The record of the later state is in quarantine."""
    writer = ProgressWriter("progress", 0, {})
    commit(log, writer, 1, PIECES[:1])
    earlier = next(record for record in commit(log, writer, 2, PIECES[1:2], 1) if record.key == b"state 1 0")
    commit(log, writer, 3, PIECES[2:], 2)
    log.writer().append([earlier])
    assert answers_in(log) == PIECES[:2]
    commit(log, writer, 4, ("[4]",))
    log.writer().append([earlier])
    with pytest.raises(StorageError, match="an answer of group 1 lacks parts"):
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
