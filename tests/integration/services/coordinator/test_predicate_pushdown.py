"""Adaptors discard what no query looks at, and a query that looks at more begins where all of it is there (ADR 45)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from penstock.errors import NotYetError
from penstock.log import Partition, Record
from penstock.services.adaptor.adaptor import Adaptor
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.coordinator.predicate_demand import (
    DEMAND_MS,
    PredicatePushdown,
    grown,
    restricted,
    timing_of,
    version_of,
)
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.wire import QueryRegistration, ShardBatch, StreamDeclaration, StreamPredicates, Tuples, decode, encode
from support.small_cluster import SmallCluster

IRI = "http://x/s"
P, Q, R = (f"http://x/{name}" for name in "pqr")
AFTER_MS = 1_000


def passes(version, all_since=None, **since):
    names = tuple(f"http://x/{name}" for name in since)
    return StreamPredicates(IRI, version, names, np.array(list(since.values()), np.int64), all_since)


def fields(record):
    return record.version, dict(zip(record.predicates, record.since.tolist(), strict=True)), record.all_since


@pytest.mark.parametrize(
    ("record", "needed", "version"),
    [
        (None, None, 0),
        (None, {P}, 0),
        (passes(4, p=1, q=4), {P}, 1),
        (passes(4, p=1, q=4), {P, Q}, 4),
        (passes(4, p=1, q=4), set(), 0),
        (passes(4, p=1), {P, R}, None),
        (passes(4, p=1), None, None),
        (passes(5, all_since=5), None, 5),
        (passes(5, all_since=5), {P}, 5),
    ],
)
def test_the_version_since_which_all_needed_predicates_pass(record, needed, version):
    assert version_of(record, None if needed is None else frozenset(needed)) == version


def test_filters_grow_and_shrink_and_record_the_version_since_which_each_predicate_passes():
    first = restricted(IRI, None, frozenset({P, Q}))
    assert fields(first) == (1, {P: 0, Q: 0}, None)
    assert restricted(IRI, first, frozenset({P, Q})) is None
    assert restricted(IRI, first, None) is None
    more = grown(IRI, first, frozenset({Q, R}))
    assert fields(more) == (2, {P: 0, Q: 0, R: 2}, None)
    less = restricted(IRI, more, frozenset({R}))
    assert fields(less) == (3, {R: 2}, None)
    assert fields(grown(IRI, less, frozenset({P}))) == (4, {P: 4, R: 2}, None)  # the break counts
    every = grown(IRI, less, None)
    assert fields(every) == (4, {}, 4)
    assert fields(restricted(IRI, every, frozenset({P}))) == (5, {P: 4}, None)


def test_a_filter_shrinks_after_a_time_of_constant_demand_without_waiting_queries():
    stream = StreamDeclaration(1, IRI, "s", 100, 0, True, (), 0, 10_000, 86_400_000)
    pushdown = PredicatePushdown(AFTER_MS)

    def due(now_ms, *reads):
        return [fields(record)[1] for record in pushdown.due([stream], {}, {IRI: reads}, now_ms)]

    assert due(0, frozenset({P})) == []
    assert due(999, frozenset({P})) == []
    assert due(1_000, frozenset({P}), frozenset({Q})) == []  # another query: from the beginning
    assert due(2_000, frozenset({P}), frozenset({Q})) == [{P: 0, Q: 0}]
    assert due(3_000, None) == []
    pushdown.record(IRI, frozenset({R}))
    assert due(4_000, frozenset({P})) == []
    assert due(5_000, frozenset({P})) == [{P: 0, R: 0}]
    due(4_000 + DEMAND_MS, frozenset({P}))
    assert due(5_000 + DEMAND_MS, frozenset({P})) == [{P: 0}]


def test_a_filter_lists_timing_predicates_only_and_does_not_exist_if_all_are_needed():
    stream = StreamDeclaration(1, IRI, "s", 100, 0, False, (P, Q), 0, 10_000, 86_400_000)
    pushdown = PredicatePushdown(0)

    def due(before, *reads):
        known = {} if before is None else {IRI: before}
        return [fields(record)[1] for record in pushdown.due([stream], known, {IRI: reads}, 0)]

    assert due(None, frozenset({P, R})) == [{P: 0}]
    assert due(passes(1, p=0), frozenset({P})) == []
    assert due(None, frozenset({P, Q})) == due(None, None) == []
    assert due(passes(3, all_since=3), None) == []
    assert timing_of(stream, frozenset({P, R})) == {P}
    assert timing_of(stream, None) == {P, Q}
    assert timing_of(StreamDeclaration(1, IRI, "s", 100, 0, True, (), 0, 10_000, 1), None) is None


def test_it_looks_again_where_something_may_be_due():
    stream = StreamDeclaration(1, IRI, "s", 100, 0, True, (), 0, 10_000, 86_400_000)
    pushdown = PredicatePushdown(AFTER_MS)
    known = {IRI: passes(2, p=1, q=2)}
    assert pushdown.next_ms == 0
    pushdown.due([stream], known, {IRI: [frozenset({P})]}, 500)
    assert pushdown.next_ms == 500 + AFTER_MS
    pushdown.due([stream], known, {IRI: [frozenset({P, Q})]}, 600)
    assert pushdown.next_ms > DEMAND_MS * 1_000, "no predicate can be removed"
    pushdown.record(IRI, frozenset({Q}))
    assert pushdown.next_ms == 0
    pushdown.due([stream], known, {IRI: [frozenset({P})]}, 700)
    assert pushdown.next_ms == 700 + DEMAND_MS, "the demand expires then"


@pytest.mark.parametrize(("timing", "retention_ms"), [((), 0), ("all", 500)])
def test_streams_whose_tuples_are_absorbed_or_retained_keep_everything(timing, retention_ms):
    stream = StreamDeclaration(1, IRI, "s", 100, 0, timing == "all", (), retention_ms, 10_000, 86_400_000)
    assert PredicatePushdown(0).due([stream], {}, {}, 0) == []


# ---- in a cluster
class Cluster(SmallCluster):
    """A cluster whose adaptors discard predicates that no query has read for a second."""

    def __init__(self, **settings):
        super().__init__()
        self.coordinator.close()
        self.coordinator = Coordinator(self.log, self.topics, "d", self.terms, self.clock, AFTER_MS)
        self.run()
        self.coordinator.declare(IRI, "s", **settings)

    def event(self, time_ms, *predicates):
        self.push(
            "s", time_ms, "".join(f'<http://x/v{time_ms}> <{p}> "some value of {time_ms}" .\n' for p in predicates)
        )

    def ask(self, name, predicate, range_ms=100):
        text = f"REGISTER QUERY {name} AS SELECT ?s FROM STREAM <{IRI}> [RANGE {range_ms}ms STEP 100ms] WHERE {{ ?s <{predicate}> ?o }}"
        return self.coordinator.register(name, text)

    def written(self):
        return [decode(message.value) for message in self.messages(self.topics.names.tuples("s"))]

    def batches(self):
        records = [decode(message.value) for message in self.messages(self.topics.names.shards)]
        return [record for record in records if isinstance(record, ShardBatch)]

    def rows(self, name):
        found = {}
        for line in self.results():
            if line["query"] == name:
                found[line["time"]] = [row["s"]["value"] for row in line["results"]["bindings"]]
        return found


@pytest.fixture
def cluster():
    made = Cluster(timing="all")
    yield made
    made.close()


def test_tuples_that_no_query_reads_are_not_written_and_a_later_query_begins_behind_them(cluster):
    cluster.ask("first", P)
    cluster.event(50, P, Q)
    cluster.run()
    assert sum(len(record.subjects) for record in cluster.written()) == 2  # not for long enough yet: both
    cluster.event(150, P, Q)
    cluster.event(250, P, Q)
    cluster.run()
    assert sum(len(record.subjects) for record in cluster.written()) == 4
    with pytest.raises(NotYetError, match=r"http://x/s.*do not yet pass on"):
        cluster.ask("second", Q)
    cluster.run()
    record = cluster.ask("second", Q)
    assert record.not_before_ms == 300  # the batch of 250 is open, and has lost one
    cluster.event(280, P, Q)
    cluster.event(350, P, Q)
    cluster.advance("s", 500)
    cluster.run()
    assert cluster.rows("second") == {400: ["http://x/v350"], 500: []}
    assert cluster.rows("first")[300] == ["http://x/v250", "http://x/v280"]
    found = json.loads(next(m.value for m in cluster.messages(cluster.topics.names.status) if b"second" in m.key))
    assert found["point"] == 300


def test_a_query_that_is_replaced_by_itself_begins_no_earlier_either(cluster):
    """Its results go to a topic of their own from now on; the open batch still lacks what no query read."""
    cluster.run()
    cluster.event(250, P)
    cluster.run()
    with pytest.raises(NotYetError):
        cluster.ask("q", P)
    cluster.run()
    text = cluster.ask("q", P).text
    again = cluster.coordinator._do(lambda active: active.queries.register("q", text, None, "own", replace=True))
    assert (again.not_before_ms, again.topic) == (300, "own")


def test_a_query_whose_predicates_already_pass_does_not_wait(cluster):
    cluster.ask("first", P)
    cluster.event(50, P)
    cluster.run()
    record = cluster.ask("second", P, range_ms=300)
    assert record.not_before_ms is None


def test_without_an_adaptor_a_query_of_more_waits(cluster):
    cluster.ask("first", P)
    cluster.run()
    cluster.adaptor.step = lambda: False
    for _ in range(3):
        with pytest.raises(NotYetError):
            cluster.ask("second", Q)
        cluster.run()
    assert "second" not in cluster.coordinator.queries


def test_a_dispatcher_that_begins_late_accepts_tuples_of_earlier_filter_versions(cluster):
    """Adaptors have committed progress past them, so no adaptor writes them again (seeds 60006, 60043, 60224 of the simulation)."""
    cluster.paused.append(cluster.dispatcher)
    cluster.ask("first", P)
    cluster.run()
    cluster.event(50, P, Q)
    cluster.run()
    with pytest.raises(NotYetError):
        cluster.ask("second", Q)
    cluster.run()
    cluster.dispatcher = Dispatcher(
        cluster.log, cluster.topics.names, 2, cluster.clock, cluster.topics.names.adaptor_group
    )
    cluster.run()
    assert cluster.ask("second", Q).not_before_ms == 100
    cluster.event(150, P, Q)
    cluster.advance("s", 200)
    cluster.run()
    assert cluster.rows("first") == {100: ["http://x/v50"], 200: ["http://x/v150"]}
    assert cluster.rows("second") == {200: ["http://x/v150"]}


def test_nothing_that_was_cut_for_an_earlier_stream_counts_for_one_that_is_declared_again(cluster):
    cluster.ask("first", P)
    cluster.run()
    names = cluster.topics.names
    [before] = [record for record in cluster.written() if record.filter_version]
    cluster.coordinator.stop("first")
    cluster.run()
    cluster.coordinator.drop(IRI)
    again = cluster.coordinator.declare(IRI, "s", timing=[Q])
    assert again.filter_version > before.filter_version
    assert cluster.coordinator.declare(IRI, "s", timing=[Q]) == again
    cluster.run()
    one, none = np.array([1], np.int64), np.empty(0, np.uint64)
    cut = replace(before, offsets=one - 1, times=one * 50, counts=one - 1, subjects=none, predicates=none, objects=none)
    cluster.log.writer().append([Record(names.tuples("s"), encode(cut), None, 0)])  # by an adaptor that was held up
    cluster.event(60, P, Q)
    cluster.advance("s", 100)
    cluster.run()
    assert cluster.dispatcher.streams[IRI].tallies.outdated == 1
    [rows] = [batch.subjects for batch in cluster.batches() if len(batch.subjects)]
    assert len(rows) == 1  # of P, which is absorbed now; nobody has asked for Q


def test_an_adaptor_that_discards_nothing_need_not_know_that_others_do(cluster):
    """It knows the stream as it was declared before, without timing predicates: it writes all tuples, and reads no filter."""
    cluster.coordinator.drop(IRI)
    cluster.coordinator.declare(IRI, "s")
    cluster.run()
    held_up, cluster.adaptor = (
        cluster.adaptor,
        Adaptor(cluster.log, cluster.topics.names, cluster.terms, cluster.topics.names.adaptor_group),
    )
    held_up._declared.refresh = held_up._declared.catch_up = lambda *_: False
    cluster.coordinator.drop(IRI)
    cluster.coordinator.declare(IRI, "s", timing="all")
    cluster.ask("first", P)
    held_up._reader.expel()
    cluster.run()
    assert cluster.dispatcher.streams[IRI].known == 1
    cluster.adaptor.close()  # the partition comes back
    cluster.paused.append(cluster.adaptor)
    cluster.event(50, P, Q)
    cluster.advance("s", 100)
    while not held_up.step():
        pass
    source = Partition(cluster.topics.names.events("s"))
    assert cluster.log.committed(cluster.topics.names.adaptor_group, [source]) == {source: 2}
    cluster.run()
    assert cluster.rows("first") == {100: ["http://x/v50"]}


def test_requests_by_topic_wait_in_their_order(cluster):
    cluster.ask("first", P)
    cluster.run()
    text = f"REGISTER QUERY q AS SELECT ?s FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{{{ ?s <{{}}> ?o }}}}"
    cluster.send(cluster.topics.names.queries, "a", text.format(Q))
    cluster.send(cluster.topics.names.queries, "b", text.format(P))
    cluster.coordinator.step()
    assert set(cluster.coordinator.queries) == {"first"}
    cluster.run()
    sequencer = [message for message in cluster.messages(cluster.topics.names.shards) if message.partition == 0]
    records = [decode(message.value) for message in sequencer]
    asked = [record.name for record in records if isinstance(record, QueryRegistration)]
    assert asked == ["first", "a", "b"]


def test_timeless_predicates_always_go_through():
    cluster = Cluster(timing=[Q])
    cluster.run()
    cluster.event(50, P, Q)
    cluster.advance("s", 100)
    cluster.run()
    assert sum(len(record.subjects) for record in cluster.written()) == 1
    cluster.close()


def test_messages_that_an_older_filter_version_cut_are_written_again_before_their_progress_is_committed(cluster):
    cluster.ask("first", P)
    cluster.run()
    adaptor, records = cluster.adaptor, cluster.adaptor.adapting.records
    said = []

    def while_it_works(messages):
        cut = records(messages)
        if not said:
            said.append(True)
            with pytest.raises(NotYetError):
                cluster.ask("second", Q)  # between its look at the log and its writing
        return cut

    cluster.event(50, P, Q)
    adaptor.adapting.records = while_it_works
    adaptor.step()
    source = Partition(cluster.topics.names.events("s"))
    assert cluster.log.committed(cluster.topics.names.adaptor_group, [source]) == {source: 1}
    older, newer = [record for record in cluster.written() if isinstance(record, Tuples) and len(record.offsets)]
    assert (older.filter_version, len(older.subjects)) == (1, 1)
    assert (newer.filter_version, len(newer.subjects)) == (2, 2)
