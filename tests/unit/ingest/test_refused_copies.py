"""Copies of refused input fit into a record, whatever the original holds."""

from __future__ import annotations

import pytest

from penstock import Client
from penstock.ingest.refused_records import (
    MAX_HEADERS_BYTES,
    MAX_REASON_BYTES,
    DeadLetter,
    LateEvent,
    dead_letter_record,
    late_record,
    read_refused,
)
from penstock.log import MAX_RECORD_BYTES, START, MemoryLog, Message, Partition, Record, Topic
from penstock.log.sizes import check_sizes, headers_bytes, wire_bytes
from penstock.log.topics import TopicNames

NAMES = TopicNames()
IRI = "http://x/s"
TYPE = (("content-type", b"text/turtle"),)


def late(data: bytes) -> LateEvent:
    return LateEvent(IRI, "penstock.events.s", 3, 77, 1_000, 2_000, data)


def dead(data: bytes, reason: str = "bad") -> DeadLetter:
    return DeadLetter("penstock.events.s", 3, 77, reason, data, IRI, 1_000)


def read(record: Record):
    return read_refused(Message(record.topic, 0, 0, 0, record.key, record.value, record.headers))


def largest(headers=TYPE) -> bytes:
    """The value of the largest event that an events topic takes."""
    return bytes(MAX_RECORD_BYTES - wire_bytes(Record(NAMES.events("s"), b"", None, headers=headers)))


@pytest.mark.parametrize(
    "make", [lambda d, h: late_record(NAMES, late(d), h), lambda d, h: dead_letter_record(NAMES, dead(d), h)]
)
@pytest.mark.parametrize("short", [0, 1, 100, 300])
def test_an_event_that_leaves_no_room_for_headers_is_cut(make, short):
    data = largest()[short:]
    record = make(data, TYPE)
    check_sizes([record])
    refused = read(record)
    if short == 300:
        assert (refused.truncated, refused.data) == (None, data)
    else:
        assert refused.truncated == len(data)
        assert data.startswith(refused.data)
        assert wire_bytes(record) == MAX_RECORD_BYTES, "as much as fits"
    assert (refused.topic, refused.partition, refused.offset) == ("penstock.events.s", 3, 77)
    assert dict(record.headers)["content-type"] == b"text/turtle"


def test_headers_of_the_original_are_bounded():
    many = (*TYPE, *((f"h{i}", b"v" * 1_000) for i in range(200)), ("large", bytes(MAX_RECORD_BYTES)))
    record = late_record(NAMES, late(b"data"), many)
    assert headers_bytes(record.headers) < 2 * MAX_HEADERS_BYTES
    named = dict(record.headers)
    assert named["content-type"] == b"text/turtle"
    copied = sum(name.startswith("h") and name != "headers-left-out" for name in named)
    assert int(named["headers-left-out"]) == 201 - copied
    assert read(record).data == b"data"


def test_a_reason_that_quotes_the_input_is_shortened():
    record = dead_letter_record(NAMES, dead(b"data", "ü" * 10_000_000))
    assert len(dict(record.headers)["reason"]) <= MAX_REASON_BYTES
    assert read(record).reason == "ü" * (MAX_REASON_BYTES // 2)


def test_a_producers_own_headers_do_not_pass_for_the_clusters():
    forged = (("truncated", b"5"), ("headers-left-out", b"9"), ("source", b"x/0/0"), ("time", b"soon"))
    refused = read(dead_letter_record(NAMES, dead(b"data"), forged))
    assert (refused.truncated, refused.topic, refused.time_ms) == (None, "penstock.events.s", 1_000)


def test_records_of_others_in_the_topics_are_passed_over_by_clients():
    log = MemoryLog()
    log.create([Topic(NAMES.dead_letter), Topic(NAMES.late)])
    good = dead_letter_record(NAMES, dead(largest()))
    others = [
        Record(t, b"\x00garbage", headers=h) for t in (NAMES.late, NAMES.dead_letter) for h in ((), (("source", b"a"),))
    ]
    log.writer().append([*others, good, late_record(NAMES, late(b"late"))])
    client = Client(log=log)
    [letter] = client.dead_letters()
    assert letter.reason == f"bad (truncated: the original has {len(largest())} bytes)"
    assert [each.data for each in client.late(IRI)] == [b"late"]
    assert len(log.reader({Partition(NAMES.late): START}).poll()) == 3
