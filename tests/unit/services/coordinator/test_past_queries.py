"""Which queries of a cluster begin in the past, and where a text says that a query cannot (ADR 107)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.engine.history.cluster_past import stored_read
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue
from penstock.errors import QueryError
from penstock.log import Record, Topic
from penstock.query.resolve import as_query, resolve
from penstock.services.coordinator.predicate_demand import KnownVersions
from penstock.services.coordinator.query_commands import can_be_refused
from penstock.services.coordinator.registrar import Registrar
from penstock.wire import DispatcherState, encode
from property import cases
from property.script import Declare, Load, Register
from support.active_coordinator import ActiveCoordinator

if TYPE_CHECKING:
    from penstock.wire import QueryRegistration

S, T, G = "http://x/s", "http://x/t", "http://x/g"
WINDOW = f"FROM STREAM <{S}> [RANGE 1s STEP 1s]"
STORED = "FROM <urn:x-penstock:stored>"


def text(clause: str, data: str = WINDOW, where: str = "?s ?p ?o", head: str = "QUERY q") -> str:
    return f"REGISTER {head} {clause} AS SELECT * {data} WHERE {{ {where} }}"


@pytest.fixture
def registrar() -> Registrar:
    made = Registrar(buckets=4, reached={S: 5_000}.get)
    made.declare(S, "s", timing="all", retention_ms=10_000)
    made.declare(T, "t", absorb_into=G)
    return made


def registered(registrar: Registrar, given: str, name: str = "q") -> QueryRegistration:
    registrar.register(name, given)
    return registrar.queries[name]


@pytest.mark.parametrize("clause", ["FROM BEGINNING", "STARTING AT 3000", "STARTING AT 9000"])
def test_a_query_of_windows_over_retained_streams_begins_in_the_past_and_is_alone(registrar, clause):
    first = registered(registrar, text(clause))
    second = registered(registrar, text(clause, head="QUERY r"), "r")
    assert [(r.past, r.alone, r.group) for r in (first, second)] == [(True, True, 3), (True, True, 4)]
    assert first.starting_at_ms == (int(clause.split()[-1]) if clause.startswith("S") else None)


def test_other_queries_do_not(registrar):
    record = registered(registrar, text(""))
    assert (record.past, record.alone) == (False, False)


REFUSED = {
    "a stream without retention": (f"FROM STREAM <{T}> [RANGE 1s STEP 1s]", "?s ?p ?o", f"<{T}>"),
    "one of two streams": (f"{WINDOW} FROM STREAM <{T}> [RANGE 1s STEP 1s]", "?s ?p ?o", f"<{T}>"),
    "the stored graph": (f"{WINDOW} {STORED}", "?s ?p ?o . ?o <http://x/last> ?z", "?s"),
    "a default graph without a window": (
        f"FROM NAMED STREAM <{S}> [NOW]",
        f"GRAPH <{S}> {{ ?s ?p ?o }} ?o ?q ?r",
        "?o",
    ),
    "a stored graph by name": (WINDOW, f"?s ?p ?o . GRAPH <{G}> {{ ?o ?q ?r }}", f"<{G}>"),
    "all named graphs": (f"{WINDOW} FROM NAMED <{G}>", "?s ?p ?o . GRAPH ?g { ?o ?q ?r }", "GRAPH"),
    "a test in the stored graph": (WINDOW, f"?s ?p ?o FILTER NOT EXISTS {{ GRAPH <{G}> {{ ?o ?q ?r }} }}", f"<{G}>"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_a_cluster_cannot_read_in_the_past_is_refused_with_its_position(registrar, why):
    data, where, construct = REFUSED[why]
    given = text("FROM BEGINNING", data, where)
    before = registrar.commands
    with pytest.raises(QueryError, match="in a cluster, a query that begins in the past cannot") as raised:
        registrar.register("q", given)
    assert raised.value.construct == construct
    assert given[raised.value.column - 1 :].startswith(construct)
    assert (registrar.queries, registrar.commands) == ({}, before)
    assert not registered(registrar, text("", data, where)).past, "nothing of the query has remained"


@pytest.mark.parametrize("where", ["?s ?p ?o . ?o <http://x/last> ?z", f"GRAPH <{G}> {{ ?o ?q ?r }}"])
def test_a_query_that_reads_the_stored_graph_begins_in_the_past_if_all_its_streams_have_graph_history(registrar, where):
    named = [f"http://x/{name}" for name in "abc"]
    for iri, settings in zip(named, [{"graph_history": True}, {"graph_history": True}, {}], strict=True):
        registrar.declare(iri, iri[-1], retention_ms=1_000, **settings)
    data = [f"FROM STREAM <{iri}> [RANGE 1s STEP 1s]" for iri in named]
    assert registered(registrar, text("FROM BEGINNING", f"{data[0]} {data[1]} {STORED}", where)).past
    with pytest.raises(QueryError, match=r"as this pattern does: declare <http://x/c> with graph_history"):
        registrar.register("r", text("FROM BEGINNING", f"{data[0]} {data[2]} {STORED}", where, "QUERY r"))


def test_entailment_is_refused_in_the_past(registrar):
    entailed = text("FROM BEGINNING").replace("WHERE", "WITH ENTAILMENT RDFS WHERE", 1)
    with pytest.raises(QueryError, match="cannot read the stored schema") as refused:
        registrar.register("q", entailed)
    assert refused.value.column == entailed.index("WITH") + 1
    registrar.register("q", entailed.replace("FROM BEGINNING", ""))


def test_query_engines_decide_whether_windows_without_a_range_begin_in_the_past():
    registrar = Registrar(reached={S: 5_000}.get)
    registrar.declare(S, "s", retention_ms=10_000)
    for number, window in enumerate(("[TRIPLES 5]", "[ELEMENTS 2]", "[ALL STEP 1s]")):
        data = f"FROM STREAM <{S}> {window}"
        record = registered(registrar, text("FROM BEGINNING", data, head=f"QUERY q{number}"), f"q{number}")
        assert (record.past, record.alone, can_be_refused(record)) == (True, True, True)
        assert not can_be_refused(registered(registrar, text("", data, head="QUERY live"), "live"))
        registrar.stop("live")
        made = text("FROM BEGINNING", data, head="STREAM <http://x/d>").replace("SELECT *", "CONSTRUCT { ?s ?p ?o }")
        with pytest.raises(QueryError, match="cannot publish a stream from a window without a range in time"):
            registrar.register("http://x/d", made)
    with pytest.raises(QueryError, match="without a range in time: use FROM BEGINNING"):
        registrar.register("r", text("STARTING AT 5000", f"FROM STREAM <{S}> [ALL STEP 1s]", head="QUERY r"))
    bounded = text("FROM BEGINNING", f"FROM STREAM <{S}> [RANGE 1s STEP 1s]", head="QUERY r")
    assert not can_be_refused(registered(registrar, bounded, "r"))


def test_starting_at_only_sets_the_grid_if_the_instant_is_not_in_the_past_or_nothing_is_retained(registrar):
    joined = f"{WINDOW} {STORED}"
    for clause, data in (("STARTING AT 5001", joined), ("STARTING AT 1000", f"FROM STREAM <{T}> [RANGE 1s STEP 1s]")):
        record = registered(registrar, text(clause, data))
        assert (record.past, record.alone) == (False, False)
        registrar.stop("q")
    with pytest.raises(QueryError, match="cannot read the stored graph"):
        registrar.register("q", text("STARTING AT 5000", joined))


def test_a_replacement_does_not_begin_in_the_past(registrar):
    registrar.register("q", text(""))
    with pytest.raises(QueryError, match="FROM BEGINNING is not available in a replacement"):
        registrar.replace("q", text("FROM BEGINNING"))
    registrar.replace("q", text("STARTING AT 3000"))
    assert not registrar.queries["q"].past
    registrar.replace("r", text("FROM BEGINNING", head="QUERY r"))
    assert registrar.queries["r"].past, "it replaces nothing"


def test_a_query_set_refuses_the_past(registrar):
    given = text("(?o) FROM BEGINNING").replace("SELECT *", "SELECT ?s")
    with pytest.raises(QueryError, match="FROM BEGINNING is not available in a query set"):
        registrar.register("q", given, report="every")


def test_a_restored_registrar_lets_no_query_join_one_in_the_past(registrar):
    registrar.register("q", text("FROM BEGINNING"))
    made = Registrar()
    for record in (*registrar.streams.values(), *registrar.queries.values()):
        made.restore(record)
    assert registered(made, text("FROM BEGINNING", head="QUERY r"), "r").group == 4


def test_the_coordinator_knows_how_far_a_stream_is_closed_from_its_dispatcher():
    made = ActiveCoordinator()
    [stream] = made.active.streams.declare([(S, "s", {"batch_ms": 100, "retention_ms": 1_000})])
    known, topic, none = KnownVersions(made.log, made.topics.names), made.topics.names.dispatcher, np.empty(0, np.int64)
    found = [known.closed_ms(stream)]
    made.log.create([Topic(topic, 1, "compact")])
    for number, closed in ((stream.number + 1, 8), (stream.number, None), (stream.number, 9)):
        state = DispatcherState(S, number, *[none] * 8, closed=closed)
        made.log.writer().append([Record(topic, encode(state), S.encode())])
        found.append(known.closed_ms(stream))
    known.close()
    assert found == [None, None, None, 1_000]


@pytest.mark.parametrize("seed", range(60))
def test_no_plan_reads_the_stored_graph_if_no_pattern_does(seed):
    registrar = Registrar()
    runtime = registrar._runtime
    case = cases.make(seed)
    for operation in case.operations:
        if isinstance(operation, Declare):
            registrar.declare(operation.iri, **dict(operation.settings))
    for operation in case.operations:
        if isinstance(operation, Load) and operation.graph is not None:
            registrar.record_graph(operation.graph)
        if isinstance(operation, Register):
            registrar.register(operation.name, operation.text)
            member = runtime.registry.members[operation.name]
            query = as_query(registrar.parse(operation.text).statement)
            catalogue = EngineCatalogue(runtime.core, runtime.streams)
            reads = stored_read(resolve(query, catalogue), catalogue) is not None
            assert reads >= member.group.plan.reads_stored, operation.text
