"""Predicate filters follow the standing queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.errors import NotYetError
from penstock.event_time.watermark import NEVER
from penstock.log import Record, Topic
from penstock.log.memory import MemoryLog
from penstock.log.topics import TopicNames
from penstock.query.parser import parse
from penstock.services.coordinator.filter_updates import FilterUpdates
from penstock.services.coordinator.predicate_demand import KnownVersions, PredicatePushdown
from penstock.wire import DispatcherState, StreamDeclaration, encode
from support.active_coordinator import ActiveCoordinator

if TYPE_CHECKING:
    from collections.abc import Sequence

IRI = "http://x/s"
P, Q = "http://x/p", "http://x/q"
AFTER_MS = 1_000


def query(name: str, predicate: str) -> str:
    window = f"FROM STREAM <{IRI}> [RANGE 1s STEP 1s]"
    return f"REGISTER QUERY {name} AS SELECT ?s {window} WHERE {{ ?s <{predicate}> ?o }}"


class Known:
    """The versions that adaptors apply: all up to `version`; earlier ones cut batches that end at `end_ms`, or at
    `complete_ms` if closed batches count.
    """

    def __init__(self) -> None:
        self.version, self.end_ms, self.complete_ms, self.closed = 0, NEVER, NEVER, False

    def cut_until(self, stream: StreamDeclaration, version: int) -> int | None:
        assert stream.iri == IRI
        return self.end_ms if version <= self.version else None

    def complete_from(self, stream: StreamDeclaration, version: int) -> int | None:
        return None if self.cut_until(stream, version) is None else max(self.end_ms, self.complete_ms)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def made() -> ActiveCoordinator:
    made = ActiveCoordinator()
    made.active.streams.declare([(IRI, "s", {"timing": "all"})])
    return made


def updates(made: ActiveCoordinator, known: Known, *, discards: bool = True) -> FilterUpdates:
    pushdown = PredicatePushdown(AFTER_MS) if discards else None
    return FilterUpdates(made.active.state, made.active.writer, known, pushdown)


def predicates(made: ActiveCoordinator) -> set[str]:
    return set(made.active.state.filters[IRI].predicates)


def test_filters_shrink_after_a_time_without_readers_and_never_without_pushdown(made):
    made.active.queries.register("q", query("q", P), None, None)
    assert not updates(made, Known(), discards=False).shrink(10 * AFTER_MS)
    filters = updates(made, Known())
    assert not filters.shrink(0)
    assert not filters.shrink(AFTER_MS - 1)
    assert filters.shrink(AFTER_MS)
    assert predicates(made) == {P}
    assert not filters.shrink(AFTER_MS)
    assert set(made.take_over().state.filters[IRI].predicates) == {P}


def test_a_query_that_reads_more_extends_the_filter_once_and_waits_for_adaptors(made):
    made.active.queries.register("q", query("q", P), None, None)
    known = Known()
    filters = updates(made, known)
    filters.shrink(0)
    filters.shrink(AFTER_MS)
    statement = parse(query("r", Q), None)
    written = made.active.writer.written
    for _ in range(2):
        with pytest.raises(NotYetError, match=f"<{IRI}> do not yet pass on"):
            filters.await_adaptors(statement)
    assert made.active.writer.written == written + 1
    assert predicates(made) == {P, Q}
    known.version, known.end_ms = made.active.state.filters[IRI].version, 700
    assert filters.await_adaptors(statement) == 700
    known.end_ms = NEVER
    assert filters.await_adaptors(statement) is None


@pytest.mark.parametrize(
    ("earlier", "expected"), [(None, None), ({}, 900), ({IRI: {P}}, 900), ({IRI: {P, Q}}, None), ({IRI: None}, None)]
)
def test_a_text_that_replaces_one_with_other_predicates_begins_after_closed_batches_that_were_cut(
    made, earlier, expected
):
    made.active.queries.register("q", query("q", P), None, None)
    known = Known()
    filters = updates(made, known)
    filters.shrink(0)
    filters.shrink(AFTER_MS)
    statement = parse(query("q", Q), None)
    with pytest.raises(NotYetError):
        filters.await_adaptors(statement, earlier)
    known.version, known.complete_ms = made.active.state.filters[IRI].version, 900
    assert filters.await_adaptors(statement, earlier) == expected


def test_the_last_batch_that_an_older_filter_cut_is_known_after_it_closes():
    log, names = MemoryLog(), TopicNames("p")
    log.create([Topic(names.dispatcher, 1, "compact")])
    writer = log.writer()
    stream = StreamDeclaration(7, IRI, "s", 100, 0, True, (), 0, 0, 0)
    known = KnownVersions(log, names)

    def state(version: int, closed: int | None, cut: Sequence[int] = ()) -> None:
        none = np.empty(0, np.int64)
        batches, versions = np.array(cut, np.int64), np.zeros(len(cut), np.int64)
        record = DispatcherState(
            IRI, 7, *[none] * 8, closed=closed, cut_batches=batches, cut_filter_versions=versions, known=version
        )
        writer.append([Record(names.dispatcher, encode(record), b"topics s")])

    state(1, 3, [4, 5])
    assert known.complete_from(stream, 2) is None
    state(2, 4, [5])
    assert (known.cut_until(stream, 2), known.complete_from(stream, 2)) == (600, 600)
    state(3, 8)
    assert (known.cut_until(stream, 2), known.complete_from(stream, 2)) == (NEVER, 600)
    assert known.complete_from(stream, 3) == 900  # seen late: each closed batch may have been cut
    assert known.complete_from(stream, 0) == NEVER
    known.close()


def test_without_filters_a_query_waits_for_no_adaptor(made):
    assert updates(made, Known()).await_adaptors(parse(query("r", Q), None)) is None


def test_unfiltered_is_the_next_version_of_streams_that_have_a_filter(made):
    filters = updates(made, Known())
    assert filters.unfiltered([IRI]) == {}
    filters.shrink(0)
    assert filters.shrink(AFTER_MS), "no query reads the stream"
    found = filters.unfiltered([IRI, "http://x/other"])
    assert [(iri, record.version, record.all_since) for iri, record in found.items()] == [(IRI, 2, 2)]


def test_closing_closes_the_reader_of_versions(made):
    known = Known()
    updates(made, known).close()
    assert known.closed
