"""Each commit is one transaction with the coordinator's state."""

from __future__ import annotations

import pytest

from penstock.errors import DataError, LimitError
from penstock.log import LogError, Record, Topic, TransientError
from penstock.services.coordinator.predicate_demand import restricted
from penstock.services.coordinator.registrar import Change
from penstock.wire import CoordinatorState, NamedGraph, StreamDrop
from support.active_coordinator import SHARDS, ActiveCoordinator

IRI = "http://x/s"


@pytest.fixture
def made() -> ActiveCoordinator:
    return ActiveCoordinator()


def test_a_commit_without_records_writes_the_state(made):
    made.active.writer.confirm()
    assert made.control() == [(b"state", CoordinatorState(0, 0, 0))]
    assert made.active.writer.written == 1


def test_a_change_goes_to_every_shard_and_an_empty_one_writes_nothing(made):
    writer = made.active.writer
    writer.commit_change(Change())
    assert (writer.written, made.control()) == (0, [])
    writer.commit_change(Change([StreamDrop(1, IRI)], {f"stream:{IRI}": None}))
    assert [made.commands(shard) for shard in range(SHARDS)] == [[StreamDrop(1, IRI)]] * SHARDS
    assert made.control() == [(f"stream:{IRI}".encode(), None), (b"state", CoordinatorState(0, 0, 0))]


def test_new_graphs_are_written_once_with_the_next_commit(made):
    made.active.registrar.record_graph("http://x/g")
    for _ in range(2):
        made.active.writer.confirm()
    assert [value for _, value in made.control() if isinstance(value, NamedGraph)] == [NamedGraph("http://x/g")]


def test_attached_records_and_offsets_are_part_of_the_bodys_transaction(made):
    writer, status = made.active.writer, made.topics.names.status
    with writer.attached([Record(status, None, b"one")], {"requests": 3}):
        made.active.streams.declare([(IRI, "s", {})])
    assert writer.written == 1
    assert made.active.requests == {"requests": 3}
    assert made.records(status) == [(b"one", None)]
    writer.confirm()
    assert made.records(status) == [(b"one", None)], "attached to one transaction only"
    assert made.take_over().requests == {"requests": 3}


def test_attached_records_are_committed_alone_if_the_body_commits_nothing(made):
    with made.active.writer.attached([Record(made.topics.names.status, None, b"one")], {"requests": 1}):
        pass
    assert (made.active.writer.written, made.active.requests) == (1, {"requests": 1})
    with pytest.raises(ValueError, match="refused"), made.active.writer.attached([], {"requests": 2}):
        raise ValueError("refused")
    assert (made.active.writer.written, made.active.requests) == (1, {"requests": 1})


def test_a_record_that_is_too_large_leaves_the_log_as_it_was_and_later_commits_write_the_earlier_state(made):
    active, names = made.active, made.topics.names
    active.streams.declare([(IRI, "s", {})])
    made.log.configure(names.control, 600)
    active.registrar.record_graph("http://x/g")
    with pytest.raises(LimitError, match=r"max\.message\.bytes"):
        active.streams.declare([("http://x/" + "t" * 900, "t", {})])
    assert active.writer.ahead
    assert active.registrar.commands == 2
    with active.writer.attached([], {"requests": 5}):
        pass
    assert made.control()[-1] == (b"state", CoordinatorState(0, 1, 0, {"requests": 5}))
    assert not any(isinstance(value, NamedGraph) for _, value in made.control())
    assert list(made.take_over().registrar.streams) == [IRI]


def test_filters_are_written_without_the_state_and_without_attached_records(made):
    record, status = restricted(IRI, None, frozenset({"http://x/p"})), made.topics.names.status
    with made.active.writer.attached([Record(status, None, b"one")], {}):
        made.active.writer.commit_filters([record])
        assert [key for key, _ in made.control()] == [f"filter:{IRI}".encode()]
        made.active.writer.confirm()
    assert made.active.writer.written == 2
    assert made.active.state.filters == {IRI: record}
    assert made.records(status) == [(b"one", None)]


def test_topics_that_brokers_refuse_are_the_requests_fault_and_a_timeout_is_not(made, monkeypatch):
    def failing(error):
        def create(_):
            raise error

        return create

    writer = made.active.writer
    monkeypatch.setattr(made.log, "create", failing(TransientError("timeout")))
    with pytest.raises(TransientError):
        writer.create([Topic("a")])
    assert not writer.ahead
    monkeypatch.setattr(made.log, "create", failing(LogError("policy")))
    with pytest.raises(DataError, match="cannot create topic a: policy"):
        writer.create([Topic("a")])
    assert writer.ahead
