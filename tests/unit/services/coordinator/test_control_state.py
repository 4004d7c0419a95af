"""A new active instance has the state that the earlier one committed."""

from __future__ import annotations

import pytest

from penstock.log import FencedError
from penstock.services.coordinator.control_state import ControlState, Opening
from penstock.services.coordinator.registrar import Registrar
from penstock.wire import CoordinatorState, NamedGraph, Placement, StreamDeclaration
from support.active_coordinator import ActiveCoordinator

IRI = "http://x/s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"


def declaration(number: int, iri: str, name: str) -> StreamDeclaration:
    return StreamDeclaration(number, iri, name, 100, 0, False, (), 0, 10_000, 86_400_000)


def test_an_empty_control_topic_gives_an_empty_state():
    state = ControlState(Registrar(), [])
    assert state.placement == Placement(0, {}, {})
    assert (state.insertions, state.filters, state.committed) == (0, {}, CoordinatorState(0, 0, 0))


def test_commands_are_restored_in_the_order_of_their_numbers_and_new_ones_follow_the_committed_count():
    records = [
        declaration(7, "http://x/b", "b"),
        NamedGraph("http://x/g"),
        CoordinatorState(3, 9, 4, {"requests": 5}),
        declaration(2, "http://x/a", "a"),
        Placement(3, {"0": "store"}, {}),
    ]
    state = ControlState(Registrar(), records)
    assert list(state.registrar.streams) == ["http://x/a", "http://x/b"]
    assert state.registrar.commands == 9
    assert (state.insertions, state.placement.epoch) == (4, 3)
    assert state.registrar.graphs == {"http://x/g"}
    assert state.registrar.new_graphs == [], "the control topic has it"
    assert state.current({"requests": 6}) == CoordinatorState(3, 9, 4, {"requests": 6})


def test_a_takeover_keeps_streams_and_queries_and_fences_the_earlier_instance():
    made = ActiveCoordinator()
    before = made.active
    before.streams.declare([(IRI, "s", {"batch_ms": 500}), ("http://x/t", "t", {})])
    before.queries.register("q", COUNT, None, None)
    before.streams.drop("http://x/t")
    after = made.take_over()
    assert after.registrar.streams == before.registrar.streams
    assert after.registrar.queries == before.registrar.queries
    assert after.registrar.commands == before.registrar.commands == 4
    with pytest.raises(FencedError):
        before.writer.confirm()


def test_an_opening_reads_the_latest_record_of_each_key():
    made = ActiveCoordinator()
    made.active.streams.declare([(IRI, "s", {}), ("http://x/t", "t", {})])
    made.active.streams.drop(IRI)
    opening = Opening(made.log, made.topics)
    while not opening.read():
        pass
    declared = [record.iri for record in opening.records() if isinstance(record, StreamDeclaration)]
    states = [record.commands for record in opening.records() if isinstance(record, CoordinatorState)]
    assert (declared, states) == (["http://x/t"], [3])
    opening.close()
