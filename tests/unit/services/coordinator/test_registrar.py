"""The registrar checks declarations and queries, and changes nothing if it refuses one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import DataError, LimitError, PenstockError, QueryError
from penstock.services.coordinator.query_commands import check_size
from penstock.services.coordinator.registrar import Beginning, Registrar
from penstock.wire import QueryRegistration, QueryStop, StreamDeclaration, StreamDrop

IRI, OUT = "http://x/s", "http://x/out"
WINDOW = f"FROM STREAM <{IRI}> [RANGE 1s STEP 1s]"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) {WINDOW} WHERE {{ ?s ?p ?o }}"
PUBLISHES = f"REGISTER STREAM <{OUT}> AS CONSTRUCT {{ ?s ?p ?o }} {WINDOW} WHERE {{ ?s ?p ?o }}"
READS = COUNT.replace(IRI, OUT)


@pytest.fixture
def registrar() -> Registrar:
    made = Registrar()
    made.declare(IRI, "s")
    return made


def restored(registrar: Registrar) -> Registrar:
    """Return another registrar with the same commands."""
    made = Registrar()
    for record in sorted([*registrar.streams.values(), *registrar.queries.values()], key=lambda r: r.number):
        made.restore(record)
    made.restored()
    return made


def test_commands_are_numbered_and_the_control_topic_has_what_is_in_force(registrar):
    registered = registrar.register("q", COUNT)
    assert [type(command) for command in registered.commands] == [QueryRegistration]
    assert registered.compacted == {"query:q": registered.commands[0]}
    stopped = registrar.stop("q")
    assert (stopped.commands, stopped.compacted) == ([QueryStop(3, "q")], {"query:q": None})
    assert stopped.stopped == registered.commands
    dropped = registrar.drop(IRI)
    assert (dropped.commands, dropped.compacted) == ([StreamDrop(4, IRI)], {f"stream:{IRI}": None})
    assert registrar.stop("q").commands == []


def test_a_stream_keeps_its_beginning_when_it_is_declared_again():
    registrar = Registrar()
    [first] = registrar.declare(IRI, "s", Beginning(3, (5,), (6,))).commands
    assert isinstance(first, StreamDeclaration)
    assert (first.filter_version, first.events_before, first.tuples_before) == (3, (5,), (6,))
    assert registrar.declare(IRI, "s", Beginning(9, (9,), (9,))).commands == []


def test_streams_are_declared_all_or_none(registrar):
    with pytest.raises(DataError, match="another stream already has the name 's'"):
        registrar.declare_all([("http://x/t", "t", {}), ("http://x/u", "s", {})], {})
    assert (list(registrar.streams), registrar.commands) == ([IRI], 1)
    registrar.declare("http://x/t", "t", batch_ms=700)
    with pytest.raises(DataError, match="already declared with another name or other settings"):
        registrar.declare("http://x/t", "t")


def test_a_stream_with_readers_is_not_dropped(registrar):
    registrar.register("q", COUNT)
    with pytest.raises(PenstockError):
        registrar.drop(IRI)
    assert IRI in registrar.streams
    assert registrar.commands == 2


def test_what_a_dropped_stream_has_absorbed_is_a_graph():
    registrar = Registrar()
    registrar.declare(IRI, "s", absorb_into="http://x/g")
    registrar.drop(IRI)
    assert (registrar.graphs, registrar.new_graphs) == ({"http://x/g"}, ["http://x/g"])


def test_a_query_that_publishes_declares_its_stream_and_cannot_be_replaced(registrar):
    change = registrar.register(OUT, PUBLISHES)
    assert [type(command) for command in change.commands] == [StreamDeclaration, QueryRegistration]
    with pytest.raises(QueryError, match="cannot be replaced, because a stream is published"):
        registrar.replace(OUT, PUBLISHES + " ")
    assert registrar.stop(OUT).compacted == {f"query:{OUT}": None, f"stream:{OUT}": None}


def test_a_stream_that_queries_read_cannot_be_published(registrar):
    registrar.declare(OUT, "out")
    registrar.register("q", READS)
    with pytest.raises(QueryError, match=f"queries already read stream <{OUT}>"):
        registrar.register(OUT, PUBLISHES)


def test_a_query_stands_until_its_text_base_topic_or_catch_up_differ(registrar):
    registrar.register("q", COUNT, None, "t", None, 7)
    assert registrar.stands("q", COUNT, None, "t")
    assert registrar.stands("q", COUNT, None, "t", 7)
    for other in (("r", COUNT, None, "t"), ("q", READS, None, "t"), ("q", COUNT, "b", "t"), ("q", COUNT, None, None)):
        assert not registrar.stands(*other)
    assert not registrar.stands("q", COUNT, None, "t", 8)


def test_a_failed_replacement_leaves_the_query_and_its_group(registrar):
    registrar.register("q", COUNT)
    before = dict(registrar.queries), registrar.commands, dict(registrar.reads)
    with pytest.raises(QueryError):
        registrar.replace("q", COUNT.replace(IRI, "http://x/unknown"))
    assert (dict(registrar.queries), registrar.commands, dict(registrar.reads)) == before
    change = registrar.register("r", COUNT.replace("q AS", "r AS"))
    assert change.commands[0].group == registrar.queries["q"].group


def test_restored_commands_give_the_same_answers(registrar):
    registrar.register("q", COUNT)
    registrar.register(OUT, PUBLISHES)
    again = restored(registrar)
    assert (again.streams, again.queries, again.reads) == (registrar.streams, registrar.queries, registrar.reads)
    assert again.commands == registrar.commands
    assert again.stop(OUT).compacted == registrar.stop(OUT).compacted


def test_sizes_count_bytes():
    check_size("a name", "ä" * 5, 10, "MAX")
    with pytest.raises(LimitError, match=r"a name of 12 bytes \(MAX is 10\)"):
        check_size("a name", "ä" * 6, 10, "MAX")


def test_the_key_of_a_query_set_is_restored(registrar):
    text = f"REGISTER QUERY near (?user) AS SELECT ?o {WINDOW} WHERE {{ ?user <http://x/p> ?o }}"
    [record] = registrar.register("near", text, report="change", key=("id",)).commands
    assert record.parts == 1
    assert (record.key, registrar.register("near", text, report="change").commands) == (("id",), [])
    again = restored(registrar)
    assert again.queries == {"near": record}
    assert again.stands("near", text, None, None, report="change", key=("id",))
    assert not again.stands("near", text, None, None, report="change", key=("user",))
    again.restore(replace(record, number=9, name="old", text=text.replace("near", "old"), key=()))  # without a key
    assert again.stands("old", text.replace("near", "old"), None, None, report="change")
