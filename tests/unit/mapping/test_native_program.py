"""The native executor of mappings: in pushes, with messages that it declines in between, and hostile messages."""

from __future__ import annotations

import json
import time

import pytest

import penstock
from penstock import DataError
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping

PREFIXES = "@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> ."
RML = f"""{PREFIXES}
<#r> rml:logicalSource [ rml:iterator "$" ] ; rml:subjectMap [ rml:template "urn:s:{{$.id}}" ] ;
  rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap [ rml:reference "$.v" ] ] ,
    [ rml:predicate e:all ; rml:objectMap [ rml:reference "$.list[*]" ] ] .
"""
HEADER = RML.replace("$.v", "@headers.v")
IRI = "urn:stream"


def batch(messages, rml=RML, **settings):
    found = StreamMapping({"rml": rml, **settings}).batch(messages, 1 << 26)
    assert found is not None
    return found


def pushed(messages, monkeypatch=None):
    """Return the answers, dead letters and report of a push; with `monkeypatch`, those of the executor in Python."""
    if monkeypatch is not None:
        monkeypatch.setattr(StreamMapping, "batch", lambda *_: None)
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, timing="all", mapping={"rml": RML})
        query = engine.register(
            f"REGISTER QUERY q AS SELECT ?s ?v FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s <urn:e:v> ?v }}"
        )
        report = engine.push_events(IRI, messages)
        engine.advance(IRI, 20_000)
        answers = [(each.time, sorted((str(row["s"]), str(row["v"])) for row in each.answer)) for each in query.poll()]
        letters = [(letter.timestamp, letter.data, letter.reason) for letter in engine.dead_letters()]
    return answers, letters, report


def test_messages_that_are_declined_keep_their_place_and_their_reason(monkeypatch):
    good = [(1001 + 10 * n, json.dumps({"id": n, "v": n}).encode()) for n in range(20)]
    messages = [
        *good[:5],
        (1050, b"{"),
        (1051, b'{"id": "\\ud800", "v": 1}'),
        (1052, '{"id": "a text", "v": "\u00e9"}'),
        (1053, "\ud800"),
        (True, b'{"id": 1, "v": 1}'),
        (1 << 61, b'{"id": 1, "v": 1}'),
        (1054, b'{"id": 1, "v": {}}'),
        (1055, b'{"id": "declined, but mapped", "v": 1, "\\ud800": 2}'),
        (1056, b'{"other": 1}'),
        *good[5:],
    ]
    native = pushed(messages)
    assert native == pushed(messages, monkeypatch)
    answers, letters, report = native
    assert [letter[0] for letter in letters] == [1050, 1051, 1053, None, 1 << 61, 1054, 1056]
    assert sum(len(rows) for _, rows in answers) == 21
    assert (report.accepted, report.late, report.rejected) == (21, 1, 7)  # 1051 is after 1052


def test_a_program_that_is_not_supported_is_for_python():
    assert StreamMapping({"rml": HEADER}).batch([], 1) is None
    assert StreamMapping({"context": {"@vocab": "urn:e:"}}).batch([], 1) is None
    with_surrogate = RML.replace("$.v", r"$['\\ud800']")
    assert StreamMapping({"rml": with_surrogate}).batch([], 1) is None


def test_a_message_that_is_too_large_is_declined():
    message = b'{"id": 1, "v": "%b"}' % (b"x" * 2000)
    mapping = StreamMapping({"rml": RML})
    assert mapping.batch([(1, message)], 1000).declined == [0]
    assert mapping.batch([(1, message)], 10_000).declined == []


@pytest.mark.parametrize(
    "message",
    [
        b'{"v": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"id": 1, "v": ' + b"1" * 5000 + b"}",
        b'{"id": 1, "v": "\xff"}',
        b'{"id": 1, "v": 1e999}',
        b'{"id": 1, "list": [' + b"1," * 200_000 + b"1]}",
        b'{"id": 1, "v": "' + b"x" * (2 << 20) + b'"}',
        b'{"id": 1, "v": 1',
        b'{"id": 1, "v": 1}}',
        b'{"id": 1, "v": 01}',
        b"[" * 100_000,
        b"\x00" * 1000,
        b"",
    ],
    ids=range(12),
)
def test_hostile_messages_are_declined_quickly(message):
    before = time.process_time()
    assert batch([(1, message)]).declined == [0]
    assert time.process_time() - before < 1


def test_a_hundred_thousand_members_are_mapped():
    members = ",".join(f'"k{n}": {n}' for n in range(100_000))
    repeated = ",".join(f'"v": {n}' for n in range(100_000))
    for text in (members, repeated):
        found = batch([(1, f'{{"id": 1, {text}, "v": 7}}'.encode())])
        assert found.ntriples(0) == b'<urn:s:1> <urn:e:v> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'


def test_a_small_message_cannot_expand_without_bounds():
    objects = ", ".join('[ rml:template "urn:t:{$.list[*]}/{$.list[*]}/{$.list[*]}" ]' for _ in range(9))
    rml = f"""{PREFIXES} <#r> rml:logicalSource [ ] ; rml:subjectMap [ rml:constant e:s ] ;
      rml:predicateObjectMap [ rml:predicate e:v ; rml:objectMap {objects} ] ."""
    message = json.dumps({"list": ["x" * 100] * 46}).encode()
    assert batch([(1, message)], rml).declined == [0]
    with pytest.raises(DataError, match="expansion"):
        StreamMapping({"rml": rml}).events(SourceMessage(message, 1))


def test_events_hold_their_texts_after_the_messages_are_gone():
    found = batch([(n, json.dumps({"id": n, "v": f"text {n}"}).encode()) for n in range(1000)])
    assert found.ntriples(999) == b'<urn:s:999> <urn:e:v> "text 999" .\n'
    assert found.times.tolist() == found.messages.tolist() == list(range(1000))
    with pytest.raises(IndexError):
        found.ntriples(1000)


def test_arguments_are_checked():
    mapping = StreamMapping({"rml": RML})
    with pytest.raises(TypeError):
        mapping.batch([5], 10)
    with pytest.raises(penstock.PenstockError, match="mapping"):
        type(mapping._native)({"format": "xml"})
