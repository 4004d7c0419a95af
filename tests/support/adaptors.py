"""A corpus of messages, and the records that an adaptor writes for it, in a form that can be compared.

In this form, terms replace ids, and the place where a blank node first occurs in its event replaces the blank node. The
form does not show how tuples are divided among records.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.ingest.refused_records import DeadLetter
from penstock.log import START, MemoryLog, Partition, Record, Topic
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.flight_server import DictionaryServer
from penstock.wire import StreamDeclaration, StreamPredicates, Tuples, encode
from support.records import record_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.log import Log, Message

STREAMS = {"http://x/a": "a", "http://x/b": "b"}
PARTITIONS = 2
_BLANK = 2

LINE = b'<http://x/s> <http://x/p> "a long literal that is not inline" .'
TURTLE = (
    '@prefix : <http://x/> . :s :p 1, 2.50, "ü"@de, "odd"^^:type ; :q [ :r "inner text of some length" ] .'.encode()
)
JSON_LD = b'{"@id": "http://x/s", "http://x/p": ["one", {"@id": "http://x/o"}]}'
CORPUS: list[tuple[bytes | None, dict[str, str]]] = [
    (LINE, {}),
    (LINE, {"timestamp": "1234"}),
    (LINE, {"timestamp": "-5", "content-type": "application/n-triples"}),
    (LINE, {"Content-Type": "application/n-quads"}),
    (TURTLE, {"content-type": "text/turtle; charset=utf-8"}),
    (JSON_LD, {"content-type": "application/ld+json", "timestamp": "2000"}),
    (b"_:a <http://x/p> _:b .\n_:b <http://x/p> _:a .", {}),
    (b"_:a <http://x/p> _:b .", {}),
    (b"", {}),
    (b"# only a comment\n", {"timestamp": "3000"}),
    (b"", {"heartbeat": "4000"}),
    (None, {"heartbeat": "4500"}),
    (b"data", {"heartbeat": "5000"}),
    (None, {}),
    (b"<http://x/s> nonsense .", {}),
    (b"\xff\xfe\x00", {"content-type": "text/turtle"}),
    (LINE, {"content-type": "text/csv"}),
    (LINE, {"timestamp": "1_000"}),
    (LINE, {"timestamp": ""}),
    (b"<http://x/g> { <http://x/s> <http://x/p> 1 }", {"content-type": "application/trig"}),
    (LINE + b"\r\n" + LINE, {"some": "header", "other": ""}),
    *[(b'<http://x/%d> <http://x/p> "value number %d" .' % (i, i), {"timestamp": str(i)}) for i in range(300)],
]
"""Messages, each a value and its headers."""


@dataclass(slots=True)
class Dictionary:
    """A dictionary service that answers at an address, with its own log."""

    address: str
    service: DictionaryService

    def terms(self, ids) -> list:
        return self.service.decode(np.asarray(ids, np.uint64))


@contextmanager
def dictionary() -> Iterator[Dictionary]:
    log, topics = MemoryLog(), ClusterTopics(TopicNames())
    log.create(topics.all())
    service = DictionaryService(log, topics)
    server = DictionaryServer("grpc://127.0.0.1:0", lambda: service)
    try:
        yield Dictionary(f"grpc://127.0.0.1:{server.port}", service)
    finally:
        server.shutdown()


def create(log: Log, names: TopicNames) -> None:
    """Create the topics of all streams, the control topic and the dead letter topic."""
    both = [topic(name) for name in STREAMS.values() for topic in (names.events, names.tuples)]
    log.create([Topic(name, PARTITIONS) for name in both])
    log.create([Topic(names.control, 1, "compact"), Topic(names.dead_letter)])


def declarations() -> dict[str, StreamDeclaration]:
    """Return the declarations of all streams, by name."""
    return {
        name: StreamDeclaration(number, iri, name, 100, 0, True, (), 0, 10_000, 86_400_000)
        for number, (iri, name) in enumerate(STREAMS.items(), 1)
    }


def declare(log: Log, names: TopicNames, *streams: str) -> None:
    """Declare these streams; without names, all streams."""
    every = declarations()
    log.writer().append(
        [Record(names.control, encode(every[name]), f"stream:{name}".encode()) for name in streams or every]
    )


def pass_only(log: Log, names: TopicNames, version: int, *predicates: str) -> None:
    """Let only these predicates of every stream pass."""
    records = [StreamPredicates(iri, version, predicates, np.full(len(predicates), version)) for iri in STREAMS]
    log.writer().append([Record(names.control, encode(r), f"filter:{r.stream}".encode()) for r in records])


def by_plain(
    names: TopicNames, dictionary: Dictionary, produced: Sequence[Record], passed: Sequence[str] | None = None
) -> tuple[Written, Adaptor]:
    """Return what the plain adaptor writes for messages. `passed`: the only predicates that pass (None: all)."""
    log = MemoryLog()
    create(log, names)
    declare(log, names)
    if passed is not None:
        pass_only(log, names, 1, *passed)
    log.writer().append(produced)
    adaptor = Adaptor(log, names, dictionary.service, names.adaptor_group)
    while adaptor.step():
        pass
    return read(log, names, dictionary.terms), adaptor


def messages(names: TopicNames) -> list[Record]:
    """Return the corpus once for each stream, over all partitions; for the second stream it begins at another message."""
    found = []
    for shift, name in enumerate(STREAMS.values()):
        for i, (value, headers) in enumerate(CORPUS[7 * shift :] + CORPUS[: 7 * shift]):
            pairs = tuple((key, text.encode()) for key, text in headers.items())
            found.append(Record(names.events(name), value, None, i % PARTITIONS, pairs, 10_000 + i))
    return found


@dataclass(slots=True)
class Written:
    """What an adaptor wrote: the events and heartbeats of each source partition in order, dead letters by source, and
    the versions of the filter.
    """

    events: dict[Partition, list[tuple]] = field(default_factory=dict)
    dead: dict[tuple[str, int, int], tuple] = field(default_factory=dict)
    versions: set[int] = field(default_factory=set)


def written(messages: Iterable[Message | Record], decoded) -> Written:
    """Return what `messages` of the tuples topics and the dead letter topic hold, in order. `decoded(ids)` returns
    terms.
    """
    found = Written()
    for message in messages:
        name, record = Partition(message.topic, message.partition), record_of(message)
        if isinstance(record, DeadLetter):
            key = record.topic, record.partition, record.offset
            found.dead[key] = record.reason, record.data, record.stream, record.time_ms
        else:
            assert isinstance(record, Tuples)
            assert record.partition == name.number
            found.versions.add(record.filter_version)
            found.events.setdefault(name, []).extend(_events(record, decoded))
    return found


def _events(record: Tuples, decoded) -> Iterable[tuple]:
    ends = np.cumsum(record.counts)
    columns = [record.subjects, record.predicates, record.objects]
    for offset, time_ms, count, end in zip(
        record.offsets.tolist(), record.times.tolist(), record.counts.tolist(), ends.tolist(), strict=True
    ):
        ids = np.stack([column[end - count : end] for column in columns], axis=1).ravel()
        yield record.stream, offset, time_ms, _terms(decoded(ids))
    if record.advance_ms is not None:
        yield record.stream, "heartbeat", record.advance_ms


def _terms(terms: Sequence) -> tuple:
    labels: dict = {}
    return tuple(
        ("blank", labels.setdefault(term, len(labels))) if term[0] == _BLANK else tuple(term) for term in terms
    )


def read(log: Log, names: TopicNames, decoded) -> Written:
    """Return what an adaptor has written to the log."""
    sources = [Partition(names.tuples(name), n) for name in STREAMS.values() for n in range(PARTITIONS)]
    records = []
    for name in [*sources, Partition(names.dead_letter)]:
        reader = log.reader({name: START})
        while True:
            records += reader.poll(10_000, 0.1)
            if reader.caught_up():
                break
        reader.close()
    return written(records, decoded)
