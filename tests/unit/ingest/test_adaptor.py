"""Events in every format become tuples; what cannot be used goes out with its bytes and the reason."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.errors import DataError
from penstock.ingest import adapting, outgoing
from penstock.ingest.adaptor import Adaptor
from penstock.ingest.message import read_event
from penstock.ingest.outgoing import OutgoingTerms
from penstock.ingest.refused import DeadLetter
from penstock.log import START, MemoryLog, Message, Partition, Record, Topic, TransientError
from penstock.log.topics import TopicNames
from penstock.rdf.terms import MAX_TERM_BYTES
from penstock.store import _native as native
from penstock.wire import StreamDeclaration, Tuples, encode
from support.records import record_of

NAMES = TopicNames()
IRI = "http://x/s"
NT = b'<http://x/a> <http://x/p> "1" .'
LINE = b'<http://x/a> <http://x/p> "a long literal that is not inline" .'


class Service:
    """A dictionary service in this process."""

    def __init__(self) -> None:
        self.dictionary = native.Dictionary()
        self.away = False
        self.asked: list[int] = []
        for i in range(50):  # so that its slots differ from the adaptor's
            self.dictionary.intern(1, f"http://other/{i}")

    def encode(self, terms):
        if self.away:
            raise TransientError("away")
        self.asked.append(len(terms))
        return self.dictionary.intern_many(list(terms))

    def decode(self, ids):
        return native.LocalTerms(self.dictionary).decode(np.asarray(ids, np.uint64))


class World:
    def __init__(self, partitions: int = 1) -> None:
        self.log = MemoryLog()
        self.log.create([Topic(NAMES.events("s"), partitions), Topic(NAMES.tuples("s"), partitions)])
        self.log.create([Topic(NAMES.control, 1, "compact"), Topic(NAMES.dead_letter)])
        self.writer = self.log.writer()
        self.service = Service()
        declaration = StreamDeclaration(1, IRI, "s", 100, 0, True, (), 0, 10_000, 86_400_000)
        self.writer.append([Record(NAMES.control, encode(declaration), b"stream:s")])

    def adaptor(self) -> Adaptor:
        return Adaptor(self.log, NAMES, self.service, NAMES.adaptor_group)

    def produce(self, value: bytes | None, partition: int = 0, time: int = 77, **headers: str) -> None:
        pairs = tuple((name.replace("_", "-"), text.encode()) for name, text in headers.items())
        self.writer.append([Record(NAMES.events("s"), value, None, partition, pairs, time)])

    def read(self, topic: str, partition: int = 0) -> list:
        return [record_of(m) for m in self.log.reader({Partition(topic, partition): START}).poll(10_000)]

    def tuples(self, partition: int = 0) -> list[Tuples]:
        return self.read(NAMES.tuples("s"), partition)

    def terms(self, record: Tuples) -> list[tuple[str, str, str]]:
        columns = (record.subjects, record.predicates, record.objects)
        return list(zip(*([term[1] for term in self.service.decode(c)] for c in columns), strict=True))


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        (None, LINE),
        ("application/n-triples", LINE),
        ("application/n-quads", LINE),
        ("text/turtle; charset=utf-8", b'@prefix x: <http://x/> . x:a x:p "a long literal that is not inline" .'),
        ("application/trig", b'PREFIX x: <http://x/> x:a x:p "a long literal that is not inline" .'),
        (
            "application/ld+json",
            b'{"@id": "http://x/a", "http://x/p": "a long literal that is not inline"}',
        ),
    ],
)
def test_every_format_gives_the_same_tuples(content_type, data):
    world = World()
    world.produce(data, **({} if content_type is None else {"content_type": content_type}))
    adaptor = world.adaptor()
    assert adaptor.step()
    [record] = world.tuples()
    assert (record.stream, record.partition, record.offsets.tolist(), record.times.tolist()) == (IRI, 0, [0], [77])
    assert world.terms(record) == [("http://x/a", "http://x/p", "a long literal that is not inline")]


def test_an_event_with_a_term_that_the_dictionary_does_not_take_is_a_dead_letter():
    world = World()
    large = b'<http://x/a> <http://x/p> "%s" .' % (b"x" * (MAX_TERM_BYTES + 1))
    many = b"\n".join(b'<http://x/a> <http://x/p> "%d%s" .' % (i, b"y" * 1_000_000) for i in range(9))
    for data in (LINE, large, many, LINE):
        world.produce(data)
    adaptor = world.adaptor()
    assert adaptor.step()
    assert sorted(offset for record in world.tuples() for offset in record.offsets.tolist()) == [0, 2, 3]
    assert sum(len(record.subjects) for record in world.tuples()) == 11
    [letter] = world.log.reader({Partition(NAMES.dead_letter): START}).poll(10)
    assert letter.value == large
    assert b"max_term_bytes" in dict(letter.headers)["reason"]


def test_the_adaptor_keeps_a_bounded_number_of_bytes_of_terms(monkeypatch):
    monkeypatch.setattr(outgoing, "MAX_BYTES", 3_000_000)
    terms = OutgoingTerms(Service())
    terms.dictionary.intern(3, "x" * 4_000_000, "http://x/type", "")
    assert terms.trim()
    assert terms.dictionary.size() == 0


def test_a_topic_of_events_may_gain_partitions():
    world = World()
    world.produce(NT)
    adaptor = world.adaptor()
    assert adaptor.step()
    world.log.grow(NAMES.events("s"), 3)
    world.produce(NT, 2)
    assert adaptor.step()
    assert world.log.topics()[NAMES.tuples("s")] == 3
    [record] = world.tuples(2)
    assert (record.partition, record.offsets.tolist()) == (2, [0])


def test_the_header_says_the_time_before_the_record_does():
    world = World()
    world.produce(NT, timestamp="1234")
    world.produce(NT)
    world.produce(NT, timestamp="-5")
    world.adaptor().step()
    [record] = world.tuples()
    assert record.times.tolist() == [1234, 77, -5]


def test_what_cannot_be_used_goes_out_and_the_rest_goes_on():
    world = World()
    world.produce(b"<http://x/a> nonsense .")
    world.produce(NT)
    world.produce(b"\xff\xfe\x00", content_type="text/turtle")
    world.produce(NT, content_type="text/csv")
    world.produce(NT, timestamp="1_000")
    world.produce(None)
    world.produce(b"<http://x/g> { <http://x/a> <http://x/p> 1 }", content_type="application/trig")
    world.produce(NT)
    adaptor = world.adaptor()
    adaptor.step()
    letters = world.read(NAMES.dead_letter)
    assert all(isinstance(letter, DeadLetter) and letter.reason for letter in letters)
    assert sorted(letter.offset for letter in letters) == [0, 2, 3, 4, 5, 6]
    assert next(each for each in letters if each.offset == 2).data == b"\xff\xfe\x00"
    assert [o for record in world.tuples() for o in record.offsets.tolist()] == [1, 7]
    assert adaptor.adapting.dead == 6


def test_blank_nodes_are_their_events_own():
    world = World()
    for _ in range(2):
        world.produce(b"_:a <http://x/p> _:a .\n_:a <http://x/p> _:b .")
    world.adaptor().step()
    [record] = world.tuples()
    subjects, objects = record.subjects.tolist(), record.objects.tolist()
    assert subjects[0] == subjects[1] == objects[0] != objects[1]
    assert not {*subjects[:2], *objects[:2]} & {*subjects[2:], *objects[2:]}


def test_terms_are_asked_for_once():
    world = World()
    adaptor = world.adaptor()
    for _ in range(5):
        world.produce(LINE)
        adaptor.step()
    assert world.service.asked == [3]
    assert len({record.objects[0] for record in world.tuples()}) == 1


def test_a_full_cache_begins_anew_with_the_same_ids():
    service = Service()
    terms = OutgoingTerms(service, max_terms=10)

    def encode_all() -> list[int]:
        ids = np.array([terms.dictionary.intern(1, f"http://x/{i}") for i in range(20)], np.uint64)
        return terms.cluster_ids(ids).tolist()

    first = encode_all()
    assert terms.trim()
    assert encode_all() == first


def test_heartbeats_pass_through():
    world = World()
    world.produce(NT, timestamp="10")
    world.produce(b"", heartbeat="2000")
    world.produce(b"", heartbeat="2000")
    world.produce(NT, timestamp="2001")
    world.produce(b"data", heartbeat="3000")
    world.adaptor().step()
    assert [(r.offsets.tolist(), r.advance_ms) for r in world.tuples()] == [([0], None), ([], 2000), ([3], None)]
    assert len(world.read(NAMES.dead_letter)) == 1


def test_nothing_is_lost_while_the_dictionary_is_away():
    world = World()
    world.produce(LINE)
    adaptor = world.adaptor()
    world.service.away = True
    for _ in range(3):
        with pytest.raises(TransientError):
            adaptor.step()
    world.service.away = False
    adaptor.step()
    assert [record.offsets.tolist() for record in world.tuples()] == [[0]]


def test_a_restart_goes_on_behind_the_committed_progress():
    world = World(2)
    for i in range(10):
        world.produce(NT, partition=i % 2)
    first = world.adaptor()
    first.step()
    first.close()
    world.produce(NT, partition=1)
    world.adaptor().step()
    assert [o for p in (0, 1) for record in world.tuples(p) for o in record.offsets.tolist()] == [*range(5), *range(6)]


def test_large_records_are_cut_at_events(monkeypatch):
    monkeypatch.setattr(adapting, "MAX_TUPLES", 3)
    world = World()
    for count in (2, 1, 2, 4, 3, 0, 1):
        world.produce(b"".join(b'<http://x/a> <http://x/p> "%d" .\n' % i for i in range(count)))
    world.adaptor().step()
    assert [record.offsets.tolist() for record in world.tuples()] == [[0, 1], [2], [4, 5], [6]]
    [letter] = world.read(NAMES.dead_letter)
    assert letter.offset == 3


@pytest.mark.parametrize("stamp", [b"", b"1.5", b"12x", b"\xd9\xa1", b"9" * 30, b"--1"])
def test_times_that_are_none_are_refused(stamp):
    with pytest.raises(DataError):
        read_event(Message("t", 0, 0, 5, None, NT, (("timestamp", stamp),)))
