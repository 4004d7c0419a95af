"""Events in every format become tuples; what cannot be used goes out with its bytes and the reason."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.engine.intake import events
from penstock.errors import DataError, StorageError
from penstock.ingest import event_adapter as adapting
from penstock.ingest.event_message import read_events
from penstock.ingest.refused_records import DeadLetter
from penstock.log import START, MemoryLog, Message, Partition, Record, Topic, TransientError
from penstock.log.topics import TopicNames
from penstock.rdf.formats import Format
from penstock.rdf.terms import MAX_TERM_BYTES
from penstock.services.adaptor.adaptor import Adaptor
from penstock.term_ids import outgoing_terms as outgoing
from penstock.term_ids.outgoing_terms import OutgoingTerms
from penstock.wire import StreamDeclaration, Tuples, encode
from support import hostile
from support.records import record_of

NAMES = TopicNames()
IRI = "http://x/s"
NT = b'<http://x/a> <http://x/p> "1" .'
LINE = b'<http://x/a> <http://x/p> "a long literal that is not inline" .'


class Service:
    """A dictionary service in this process."""

    def __init__(self) -> None:
        self.dictionary = native.Dictionary()
        self.unavailable = False
        self.asked: list[int] = []
        for i in range(50):  # so that its slots differ from the adaptor's
            self.dictionary.intern(1, f"http://other/{i}")

    def encode(self, terms):
        if self.unavailable:
            raise TransientError("unavailable")
        self.asked.append(len(terms))
        return self.dictionary.intern_many(list(terms))

    def decode(self, ids):
        return native.LocalTerms(self.dictionary).decode(np.asarray(ids, np.uint64))


class StateMachine:
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
    state_machine = StateMachine()
    state_machine.produce(data, **({} if content_type is None else {"content_type": content_type}))
    adaptor = state_machine.adaptor()
    assert adaptor.step()
    [record] = state_machine.tuples()
    assert (record.stream, record.partition, record.offsets.tolist(), record.times.tolist()) == (IRI, 0, [0], [77])
    assert state_machine.terms(record) == [("http://x/a", "http://x/p", "a long literal that is not inline")]


def test_an_event_with_a_term_that_the_dictionary_does_not_take_is_a_dead_letter():
    state_machine = StateMachine()
    large = b'<http://x/a> <http://x/p> "%s" .' % (b"x" * (MAX_TERM_BYTES + 1))
    many = b"\n".join(b'<http://x/a> <http://x/p> "%d%s" .' % (i, b"y" * 1_000_000) for i in range(9))
    for data in (LINE, large, many, LINE):
        state_machine.produce(data)
    adaptor = state_machine.adaptor()
    assert adaptor.step()
    assert sorted(offset for record in state_machine.tuples() for offset in record.offsets.tolist()) == [0, 2, 3]
    assert sum(len(record.subjects) for record in state_machine.tuples()) == 11
    [letter] = state_machine.log.reader({Partition(NAMES.dead_letter): START}).poll(10)
    assert letter.value == large
    assert b"max_term_bytes" in dict(letter.headers)["reason"]


def test_the_adaptor_keeps_a_bounded_number_of_bytes_of_terms(monkeypatch):
    monkeypatch.setattr(outgoing, "MAX_BYTES", 3_000_000)
    terms = OutgoingTerms(Service())
    terms.dictionary.intern(3, "x" * 4_000_000, "http://x/type", "")
    assert terms.trim()
    assert terms.dictionary.size() == 0


def test_a_topic_of_events_may_gain_partitions():
    state_machine = StateMachine()
    state_machine.produce(NT)
    adaptor = state_machine.adaptor()
    assert adaptor.step()
    state_machine.log.grow(NAMES.events("s"), 3)
    state_machine.produce(NT, 2)
    assert adaptor.step()
    assert state_machine.log.topics()[NAMES.tuples("s")] == 3
    [record] = state_machine.tuples(2)
    assert (record.partition, record.offsets.tolist()) == (2, [0])


def test_the_header_says_the_time_before_the_record_does():
    state_machine = StateMachine()
    state_machine.produce(NT, timestamp="1234")
    state_machine.produce(NT)
    state_machine.produce(NT, timestamp="-5")
    state_machine.adaptor().step()
    [record] = state_machine.tuples()
    assert record.times.tolist() == [1234, 77, -5]


def test_what_cannot_be_used_goes_out_and_the_rest_goes_on():
    state_machine = StateMachine()
    state_machine.produce(b"<http://x/a> nonsense .")
    state_machine.produce(NT)
    state_machine.produce(b"\xff\xfe\x00", content_type="text/turtle")
    state_machine.produce(NT, content_type="text/csv")
    state_machine.produce(NT, timestamp="1_000")
    state_machine.produce(None)
    state_machine.produce(b"<http://x/g> { <http://x/a> <http://x/p> 1 }", content_type="application/trig")
    state_machine.produce(NT)
    adaptor = state_machine.adaptor()
    adaptor.step()
    letters = state_machine.read(NAMES.dead_letter)
    assert all(isinstance(letter, DeadLetter) and letter.reason for letter in letters)
    assert sorted(letter.offset for letter in letters) == [0, 2, 3, 4, 5, 6]
    assert next(each for each in letters if each.offset == 2).data == b"\xff\xfe\x00"
    assert [o for record in state_machine.tuples() for o in record.offsets.tolist()] == [1, 7]
    assert adaptor.adapting.dead == 6


def test_blank_nodes_are_their_events_own():
    state_machine = StateMachine()
    for _ in range(2):
        state_machine.produce(b"_:a <http://x/p> _:a .\n_:a <http://x/p> _:b .")
    state_machine.adaptor().step()
    [record] = state_machine.tuples()
    subjects, objects = record.subjects.tolist(), record.objects.tolist()
    assert subjects[0] == subjects[1] == objects[0] != objects[1]
    assert not {*subjects[:2], *objects[:2]} & {*subjects[2:], *objects[2:]}


def test_terms_are_asked_for_once():
    state_machine = StateMachine()
    adaptor = state_machine.adaptor()
    for _ in range(5):
        state_machine.produce(LINE)
        adaptor.step()
    assert state_machine.service.asked == [3]
    assert len({record.objects[0] for record in state_machine.tuples()}) == 1


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
    state_machine = StateMachine()
    state_machine.produce(NT, timestamp="10")
    state_machine.produce(b"", heartbeat="2000")
    state_machine.produce(b"", heartbeat="2000")
    state_machine.produce(NT, timestamp="2001")
    state_machine.produce(b"data", heartbeat="3000")
    state_machine.adaptor().step()
    assert [(r.offsets.tolist(), r.advance_ms) for r in state_machine.tuples()] == [
        ([0], None),
        ([], 2000),
        ([3], None),
    ]
    assert len(state_machine.read(NAMES.dead_letter)) == 1


def test_nothing_is_lost_while_the_dictionary_is_unavailable():
    state_machine = StateMachine()
    state_machine.produce(LINE)
    adaptor = state_machine.adaptor()
    state_machine.service.unavailable = True
    for _ in range(3):
        with pytest.raises(TransientError):
            adaptor.step()
    state_machine.service.unavailable = False
    adaptor.step()
    assert [record.offsets.tolist() for record in state_machine.tuples()] == [[0]]


def test_a_restart_goes_on_behind_the_committed_progress():
    state_machine = StateMachine(2)
    for i in range(10):
        state_machine.produce(NT, partition=i % 2)
    first = state_machine.adaptor()
    first.step()
    first.close()
    state_machine.produce(NT, partition=1)
    state_machine.adaptor().step()
    assert [o for p in (0, 1) for record in state_machine.tuples(p) for o in record.offsets.tolist()] == [
        *range(5),
        *range(6),
    ]


def test_large_records_are_cut_at_events(monkeypatch):
    monkeypatch.setattr(adapting, "MAX_TUPLES", 3)
    state_machine = StateMachine()
    for count in (2, 1, 2, 4, 3, 0, 1):
        state_machine.produce(b"".join(b'<http://x/a> <http://x/p> "%d" .\n' % i for i in range(count)))
    state_machine.adaptor().step()
    assert [record.offsets.tolist() for record in state_machine.tuples()] == [[0, 1], [2], [4, 5], [6]]
    [letter] = state_machine.read(NAMES.dead_letter)
    assert letter.offset == 3


@pytest.mark.parametrize("stamp", [b"", b"1.5", b"12x", b"\xd9\xa1", b"9" * 30, b"--1"])
def test_times_that_are_none_are_refused(stamp):
    with pytest.raises(DataError):
        read_events(Message("t", 0, 0, 5, None, NT, (("timestamp", stamp),)))


def test_patches_become_tuples_with_flags_and_removals_of_timing_predicates_dead_letters(monkeypatch):
    monkeypatch.setattr(adapting, "MAX_TUPLES", 3)  # records are cut
    state_machine = StateMachine()
    declaration = StreamDeclaration(2, IRI, "s", 100, 0, False, ("http://x/t",), 0, 10_000, 86_400_000)
    state_machine.writer.append([Record(NAMES.control, encode(declaration), b"stream:s")])
    line = LINE.decode()
    large = '<http://x/a> <http://x/p> "%s" .' % ("x" * (MAX_TERM_BYTES + 1))
    timed = "<http://x/a> <http://x/t> <http://x/b> ."
    patches = [f"A {line}\nD {line}", f"D {timed}", f"D {line}", f"A {large}\nD {line}", f"A {timed}\nD {line}", "D"]
    state_machine.produce(line.encode())
    for patch in patches:
        state_machine.produce(patch.encode(), content_type="application/rdf-patch")
    adaptor = state_machine.adaptor()
    assert adaptor.step()
    found = state_machine.tuples()
    by_offset = [(record.offsets.tolist(), record.counts.tolist(), record.removed.tolist()) for record in found]
    assert by_offset == [([0], [1], []), ([1, 3], [2, 1], [0, 1, 1]), ([5], [2], [0, 1])]
    letters = sorted(state_machine.read(NAMES.dead_letter), key=lambda letter: letter.offset)
    assert [letter.offset for letter in letters] == [2, 4, 6]
    assert [letter.data for letter in letters] == [patches[i].encode() for i in (1, 3, 5)]
    assert "timing predicate" in letters[0].reason


# ---- whatever an event causes is its own
def hostile_events() -> dict[str, tuple[str, bytes]]:
    made = {name: (fmt, make(20_000).encode()) for name, (fmt, make) in hostile.DOCUMENTS.items()}
    made |= {f"a long {name}": (fmt, make(1 << 20).encode()) for name, (fmt, make) in hostile.TOKENS.items()}
    made["a long literal"] = "turtle", hostile.TOKENS["literal"][1](17 << 20).encode()
    made["plain JSON"] = "json-ld", b'{"temperature": 21.5}'
    made["deep JSON"] = "json-ld", b"[" * 100_000
    made["random bytes"] = "turtle", bytes(range(256)) * 100
    return made


HOSTILE = hostile_events()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_event_becomes_tuples_or_a_dead_letter_and_the_rest_goes_on(name):
    fmt, data = HOSTILE[name]
    state_machine = StateMachine()
    state_machine.produce(LINE)
    state_machine.produce(data, content_type=Format(fmt).media_type)
    state_machine.produce(LINE)
    adaptor = state_machine.adaptor()
    while adaptor.step():
        pass
    letters = state_machine.read(NAMES.dead_letter)
    offsets = [offset for record in state_machine.tuples() for offset in record.offsets.tolist()]
    assert offsets == ([0, 2] if letters else [0, 1, 2])
    assert all(letter.reason and letter.offset == 1 for letter in letters)
    assert all(letter.data == data for letter in letters if len(data) < 1 << 20)
    assert state_machine.log.committed(NAMES.adaptor_group, [Partition(NAMES.events("s"))]) == {
        Partition(NAMES.events("s")): 3
    }


@pytest.mark.parametrize("name", ["entities", "a long literal", "plain JSON", "deep JSON", "objects in objects"])
def test_events_that_used_to_stop_the_adaptor_are_dead_letters(name):
    fmt, data = HOSTILE[name]
    state_machine = StateMachine()
    state_machine.produce(data, content_type=Format(fmt).media_type)
    state_machine.adaptor().step()
    [letter] = state_machine.read(NAMES.dead_letter)
    assert letter.offset == 0
    assert state_machine.tuples() == [] or not any(len(record.offsets) for record in state_machine.tuples())


@pytest.mark.parametrize(
    "error", [DataError("not that"), RuntimeError("odd"), MemoryError(), RecursionError(), AssertionError()]
)
def test_an_event_at_which_anything_fails_is_a_dead_letter_alone(error):
    state_machine = StateMachine()
    guilty = b"http://x/guilty"

    def encode_terms(terms, encode=state_machine.service.encode):
        if any(term[1].encode() == guilty for term in terms):
            raise error
        return encode(terms)

    state_machine.service.encode = encode_terms
    for i in range(20):
        subject = guilty if i in {3, 11} else b"http://x/%d" % i
        state_machine.produce(b"<%s> <http://x/p> <http://x/o> ." % subject)
    adaptor = state_machine.adaptor()
    adaptor.step()
    assert sorted(letter.offset for letter in state_machine.read(NAMES.dead_letter)) == [3, 11]
    offsets = [offset for record in state_machine.tuples() for offset in record.offsets.tolist()]
    assert offsets == [i for i in range(20) if i not in {3, 11}]
    assert (adaptor.adapting.events, adaptor.adapting.tuples, adaptor.adapting.dead) == (18, 18, 2)


@pytest.mark.parametrize("error", [TransientError("unavailable"), StorageError("broken")])
def test_what_is_no_events_fault_stops_the_step_and_writes_no_dead_letter(error):
    state_machine = StateMachine()

    def encode_terms(_terms):
        raise error

    state_machine.service.encode = encode_terms
    state_machine.produce(LINE)
    with pytest.raises(type(error)):
        state_machine.adaptor().step()
    assert state_machine.read(NAMES.dead_letter) == []


@pytest.mark.parametrize(
    "error", [MemoryError("large"), OverflowError("far"), UnicodeError("odd"), RecursionError("deep")]
)
def test_an_error_of_the_parser_is_the_events(monkeypatch, error):
    def parse(_dictionary, data, *_):
        if b"guilty" in data:
            raise error
        return real(_dictionary, data, *_)

    real = events.parse
    monkeypatch.setattr(events, "parse", parse)
    state_machine = StateMachine()
    for text in (b"<u:a> <u:p> 1 .", b"# guilty", b"<u:b> <u:p> 1 ."):
        state_machine.produce(text, content_type="text/turtle")
    state_machine.adaptor().step()
    [letter] = state_machine.read(NAMES.dead_letter)
    assert (letter.offset, letter.reason.split(":")[0]) == (1, type(error).__name__)
    assert [offset for record in state_machine.tuples() for offset in record.offsets.tolist()] == [0, 2]


def test_a_step_ends_between_large_events_and_keeps_what_it_has_done():
    state_machine = StateMachine()
    for i in range(40):
        state_machine.produce(b"<http://x/%d> <http://x/p> <http://x/o> . #" % i + b"x" * 20_000)
    clock = iter(range(0, 10_000, 4))
    adaptor = Adaptor(
        state_machine.log, NAMES, state_machine.service, NAMES.adaptor_group, now=lambda: float(next(clock))
    )
    source = Partition(NAMES.events("s"))
    progress = []
    while adaptor.step():
        progress.append(state_machine.log.committed(NAMES.adaptor_group, [source])[source])
    assert progress[-1] == 40
    assert len(progress) > 1
    assert progress == sorted(set(progress))
    assert [offset for record in state_machine.tuples() for offset in record.offsets.tolist()] == list(range(40))


def test_events_that_were_not_reached_before_a_crash_are_read_again():
    state_machine = StateMachine()
    for i in range(40):
        state_machine.produce(b"<http://x/%d> <http://x/p> <http://x/o> . #" % i + b"x" * 20_000)
    clock = iter(range(0, 10_000, 100))
    Adaptor(state_machine.log, NAMES, state_machine.service, NAMES.adaptor_group, now=lambda: float(next(clock))).step()
    done = state_machine.log.committed(NAMES.adaptor_group, [Partition(NAMES.events("s"))])[
        Partition(NAMES.events("s"))
    ]
    assert 0 < done < 40
