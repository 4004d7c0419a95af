"""Single records that no service may stand still at, on a real broker: too large, too late, unreadable
(docs/operations.md).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from confluent_kafka import Producer

from e2e.test_ingest_kafka import IRI, ROOT, SHARDS, cluster, wait  # noqa: F401 - a fixture
from penstock.ingest.refused_records import LateEvent
from penstock.log import MAX_RECORD_BYTES, Partition, Record
from penstock.log.sizes import wire_bytes
from penstock.wire import ShardBatch, Tuples, encode
from penstock.wire.parts import joined

pytestmark = pytest.mark.xdist_group("broker")


def tuples(made, offset: int, time_ms: int, count: int) -> None:
    """One event of so many tuples of one subject, in the adaptor's place."""
    ids = np.arange(count, dtype=np.uint64)
    record = Tuples(
        IRI, 0, np.array([offset]), np.array([time_ms]), np.array([count]), np.ones(count, np.uint64), ids, ids
    )
    made.writer.append([Record(made.names.tuples("s"), encode(record), None, 0)])


def test_a_batch_of_millions_of_tuples_of_one_subject_goes_through(cluster):  # noqa: F811
    made = cluster()
    for offset in range(3):
        tuples(made, offset, 1_050, 800_000)
    tuples(made, 3, 1_250, 1)
    process = made.dispatcher()
    wait(lambda: made.closed() >= 10, "the batch is in every shard")
    found = []
    for shard in range(SHARDS):
        records = [each for each in made.read(made.names.shards, shard) if each.last == 10]
        assert [each.part for each in records] == list(range(10))
        assert all(isinstance(each, ShardBatch) and each.parts == 10 for each in records)
        found.append(joined({each.part: each for each in records}))
    assert sorted(len(each.times) for each in found) == [0, 2_400_000]
    assert process.poll() is None


def test_late_and_bad_events_of_the_largest_size_are_copied_and_cut(cluster):  # noqa: F811
    made = cluster()
    made.adaptor()
    process = made.dispatcher()
    made.produce([9_050, 9_250])
    wait(lambda: made.closed() >= 90, "a batch")
    headers = (("timestamp", b"1050"),)
    room = MAX_RECORD_BYTES - wire_bytes(Record(made.names.events("s"), b"", headers=headers))
    line = b"<http://x/a> <http://x/p> <http://x/o> .\n"
    late = line + b"#" + bytes(random.Random(1).choices(b"abcdefgh", k=room - len(line) - 1))
    bad = random.Random(2).randbytes(room)
    made.writer.append([Record(made.names.events("s"), value, headers=headers) for value in (late, bad)])
    made.produce([9_350, 9_450])
    wait(lambda: made.closed() >= 93, "later events")
    wait(lambda: made.read(made.names.late) and made.read(made.names.dead_letter), "copies of both")
    for topic, original in ((made.names.late, late), (made.names.dead_letter, bad)):
        [copy] = made.read(topic)
        assert isinstance(copy, LateEvent) == (topic == made.names.late)
        assert copy.truncated == len(original)
        assert original.startswith(copy.data)
        assert len(copy.data) > room - 1_000
    assert process.poll() is None


def test_a_batch_that_decompresses_to_gigabytes_is_a_dead_letter(cluster):  # noqa: F811
    """A few kilobytes in the topic. The client stops at 100 MB, and would otherwise fetch the batch for ever."""
    made = cluster()
    made.adaptor()
    process = made.dispatcher()
    made.produce([1_050])
    settings = {"compression.type": "zstd", "message.max.bytes": 1_000_000_000, "batch.size": 900_000_000}
    settings["linger.ms"] = 60_000  # flush() sends one batch
    producer = Producer({"bootstrap.servers": made.bootstrap_servers, **settings})
    for _ in range(4):
        producer.produce(made.names.events("s"), b"x" * (40 << 20), partition=0)
    assert producer.flush(60.0) == 0
    made.produce([1_060, 1_250])
    wait(lambda: made.closed() >= 10, "later events")
    [letter] = made.read(made.names.dead_letter)
    assert (letter.offset, letter.data) == (4, b"")
    assert "offsets 1 to 4: the client cannot decompress the batch" in letter.reason
    times = [int(t) for batch in made.read(made.names.shards, 0) + made.read(made.names.shards, 1) for t in batch.times]
    assert sorted(times) == [1_050, 1_060]
    assert process.poll() is None


def test_garbage_in_an_internal_topic_stops_the_dispatcher_until_it_is_in_quarantine(cluster):  # noqa: F811
    made = cluster()
    made.adaptor()
    first = made.dispatcher(heard=True)
    made.produce([1_050, 1_250])
    wait(lambda: made.closed() >= 10, "a batch")
    topic = Partition(made.names.tuples("s"))
    place = f"{topic.topic}:0:{made.log.spans([topic])[topic].end}"
    made.writer.append([Record(topic.topic, b"nine byte")])
    for process in (first, made.dispatcher(heard=True), made.dispatcher(heard=True)):
        said = process.communicate(timeout=60)[1]
        assert process.returncode == 1
        [failed] = [line for line in map(json.loads, said.splitlines()) if line["event"] == "failed"]
        assert failed["record"] == place
        assert failed["command"] == f"penstock quarantine {place}"
    assert f"there is no record {topic.topic}:0:999999" in quarantine(made, f"{topic.topic}:0:999999", code=1)
    assert f"{place} is in quarantine: 9 bytes are not a record" in quarantine(made, place)
    assert "already" in quarantine(made, place)
    assert place in quarantine(made, "--list")
    made.dispatcher()
    made.produce([1_350, 1_450])
    wait(lambda: made.closed() >= 13, "batches go on")
    assert made.batches() == {10: [1_050], 12: [1_250], 13: [1_350]}
    [letter] = made.read(made.names.dead_letter)
    assert letter.data == b"nine byte"


def quarantine(made, *arguments: str, code: int = 0) -> str:
    """What the command says."""
    command = [sys.executable, "-c", "from penstock.cli.app import main; raise SystemExit(main())", "quarantine"]
    options = ["--bootstrap-servers", made.bootstrap_servers, "--prefix", made.names.prefix]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "libs")}
    done = subprocess.run(
        [*command, *options, *arguments], env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr
