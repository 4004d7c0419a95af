"""Streams with a mapping: JSON in, answers out; rejected messages; restarts."""

from __future__ import annotations

import json
import shutil

import pytest

import penstock
from penstock import DataError

STREAM = "urn:stream"
RML = """@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> .
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "urn:s:{$.id}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.v" ] ] .
"""
MAPPING = {"rml": RML, "time": {"path": "$.at", "unit": "ms"}}
QUERY = f"""REGISTER QUERY q AS SELECT ?s ?v FROM STREAM <{STREAM}> [RANGE 1s STEP 1s]
    WHERE {{ ?s <urn:e:v> ?v }} ORDER BY ?v"""


def message(number, at, value=None):
    return json.dumps({"id": number, "at": at, "v": number if value is None else value})


@pytest.fixture
def engine():
    with penstock.Engine() as made:
        made.declare_stream(STREAM, timing="all", mapping=MAPPING)
        yield made


def rows(query):
    return [[str(row["s"]) for row in evaluation.answer] for evaluation in query.poll()]


def test_messages_become_events_with_their_own_times(engine):
    query = engine.register(QUERY)
    assert engine.push(STREAM, message(1, 100)).accepted == 1
    report = engine.push_events(STREAM, [(None, message(n, 100 * n).encode()) for n in range(2, 12)])
    assert (report.accepted, report.late, report.rejected) == (10, 0, 0)
    engine.advance(STREAM, 2000)
    first, second = rows(query)
    assert first == [f"urn:s:{n}" for n in range(1, 11)]
    assert second == ["urn:s:11"]


def test_rdf_is_pushed_by_naming_its_format(engine):
    query = engine.register(QUERY)
    engine.push(STREAM, "<urn:s:nt> <urn:e:v> 1 .".replace(" 1 ", ' "1" '), 5, format="nt")
    engine.push(STREAM, "<urn:s:ttl> <urn:e:v> 2 .", 6, format="turtle")
    engine.push(STREAM, message(3, 7), format="application/json")
    engine.advance(STREAM, 1000)
    (found,) = rows(query)
    assert sorted(found) == ["urn:s:3", "urn:s:nt", "urn:s:ttl"]


def test_a_message_that_fails_is_a_dead_letter_with_its_text_and_the_path(engine):
    bad = message(2, 5, [1])
    with pytest.raises(DataError, match=r"\$\.v: an array"):
        engine.push(STREAM, bad, 77)
    report = engine.push_events(STREAM, [(None, message(1, 5)), (None, bad), (None, "{"), (None, '{"id": 1, "v": 2}')])
    assert (report.accepted, report.rejected) == (1, 3)
    letters = engine.dead_letters()
    assert [letter.data for letter in letters] == [bad.encode(), bad.encode(), b"{", b'{"id": 1, "v": 2}']
    assert "$.v: an array" in letters[1].reason
    assert "time at '$.at'" in letters[3].reason


def test_a_message_with_one_bad_event_is_rejected_whole():
    with penstock.Engine() as engine:
        engine.declare_stream(STREAM, timing="all", mapping=MAPPING | {"events": "$[*]"})
        good, bad = message(1, 5), message(2, 6, {})
        report = engine.push_events(STREAM, [(None, f"[{good},{bad}]"), (None, f"[{good},{message(3, 7)}]")])
        assert (report.accepted, report.rejected) == (2, 1)
        assert engine.stats()["streams"][STREAM]["events"] == 2


def test_late_events_have_the_text_of_their_message(engine):
    engine.advance(STREAM, 1000)
    assert engine.push(STREAM, message(1, 500)).late == 1
    assert [late.data for late in engine.late(STREAM)] == [message(1, 500).encode()]


def test_the_time_of_a_message_may_be_that_of_the_call():
    with penstock.Engine() as engine:
        engine.declare_stream(STREAM, timing="all", mapping={"rml": RML})
        assert engine.push(STREAM, message(1, 0), 40).accepted == 1
        with pytest.raises(DataError, match="no timestamp"):
            engine.push(STREAM, message(1, 0))


def test_another_format_of_messages_is_an_error(engine):
    with pytest.raises(DataError, match="reads json, not csv"):
        engine.push(STREAM, "a,b\n1,2\n", format="csv")


def test_an_invalid_mapping_declares_nothing():
    with penstock.Engine() as engine:
        with pytest.raises(DataError, match="needs one of `rml`, `construct` and `context`"):
            engine.declare_stream(STREAM, timing="all", mapping={})
        assert STREAM not in engine.streams


def test_mapping_and_messages_are_in_the_write_ahead_log(tmp_path):
    folder = tmp_path / "data"
    with penstock.Engine(folder, durability="commit") as engine:
        engine.declare_stream(STREAM, timing="all", mapping=MAPPING)
        engine.register(QUERY)
        engine.push_events(STREAM, [(None, message(n, 100)) for n in range(3)] + [(None, "{")])
        shutil.copytree(folder, tmp_path / "crashed")  # no checkpoint has the messages
    with penstock.Engine(tmp_path / "crashed", durability="commit") as engine:
        assert [letter.data for letter in engine.dead_letters()] == [b"{"]
        answered_after_a_restart(engine, 4)


def test_the_mapping_is_in_a_checkpoint(tmp_path):
    with penstock.Engine(tmp_path) as engine:
        engine.declare_stream(STREAM, timing="all", mapping=MAPPING)
        engine.register(QUERY)
        engine.push(STREAM, message(1, 100))
    with penstock.Engine(tmp_path) as engine:
        answered_after_a_restart(engine, 2)


def answered_after_a_restart(engine, count):
    assert engine.streams[STREAM].mapping == MAPPING
    engine.declare_stream(STREAM, timing="all", mapping=MAPPING)
    with pytest.raises(DataError, match="already declared differently"):
        engine.declare_stream(STREAM, timing="all")
    engine.push(STREAM, message(7, 200))
    engine.advance(STREAM, 1000)
    assert [len(found) for found in rows(engine.queries["q"])] == [count]
