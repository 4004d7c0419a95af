"""Queries are registered, replaced and stopped, each by one transaction."""

from __future__ import annotations

import pytest

from penstock.engine.limits import MAX_CATCH_UP, MOST_CATCH_UP
from penstock.errors import DataError, LimitError, QueryError
from penstock.wire import QueryRegistration, QueryStop, StreamDeclaration
from support.active_coordinator import SHARDS, ActiveCoordinator

IRI = "http://x/s"


def query(name: str = "q", variable: str = "n") -> str:
    window = f"FROM STREAM <{IRI}> [RANGE 1s STEP 1s]"
    return f"REGISTER QUERY {name} AS SELECT (COUNT(*) AS ?{variable}) {window} WHERE {{ ?s ?p ?o }}"


@pytest.fixture
def made() -> ActiveCoordinator:
    made = ActiveCoordinator()
    made.active.streams.declare([(IRI, "s", {})])
    return made


def test_a_registration_goes_to_every_shard_and_a_repeated_one_writes_nothing(made):
    record = made.active.queries.register("q", query(), None, None)
    assert (record.number, record.streams, record.max_catch_up) == (2, (IRI,), MAX_CATCH_UP)
    assert [made.commands(shard)[1:] for shard in range(SHARDS)] == [[record]] * SHARDS
    assert made.active.queries.register("q", query(), None, None) == record
    assert made.active.writer.written == 2


def test_an_invalid_query_is_refused_and_nothing_is_written(made):
    with pytest.raises(QueryError):
        made.active.queries.register("q", "no query", None, None)
    with pytest.raises(DataError, match=f"max_catch_up must be between 1 and {MOST_CATCH_UP}, not 0"):
        made.active.queries.register("q", query(), None, None, 0)
    with pytest.raises(QueryError, match=f"cannot read <{IRI}>, which has no retention"):
        made.active.queries.register("q", query().replace("q AS", "q FROM BEGINNING AS", 1), None, None)
    with pytest.raises(LimitError, match="a query's text of"):
        made.active.queries.register("q", query() + " " * (1 << 20), None, None)
    with pytest.raises(DataError, match="the cluster's own"):
        made.active.queries.register("q", query(), None, made.topics.names.control)
    assert (made.active.writer.written, made.active.registrar.commands) == (1, 1)


def test_a_query_is_replaced_in_one_transaction_and_stays_if_the_new_one_is_invalid(made):
    first = made.active.queries.register("q", query(), None, None)
    with pytest.raises(QueryError):
        made.active.queries.register("q", "no query", None, None, replace=True)
    assert made.active.registrar.queries == {"q": first}
    second = made.active.queries.register("q", query(variable="m"), None, None, replace=True)
    assert made.commands()[2:] == [second]
    assert (second.replaces, second.number) == (first.number, 3)
    assert made.active.writer.written == 3
    assert made.take_over().registrar.queries == {"q": second}


def test_a_results_topic_is_created_with_the_query(made):
    made.active.queries.register("q", query(), None, "answers")
    assert "answers" in made.log.topics()


def test_a_stopped_query_leaves_the_control_topic(made):
    made.active.queries.register("q", query(), None, None)
    assert made.active.queries.stop("q")
    assert (b"query:q", None) in made.control()
    assert not made.active.queries.stop("q")
    assert made.active.writer.written == 3
    kinds = [type(record) for record in made.commands()]
    assert kinds == [StreamDeclaration, QueryRegistration, QueryStop]
