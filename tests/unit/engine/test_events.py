"""Events are taken whole or refused whole, one by one or many in one call: with the same outcome."""

from __future__ import annotations

import numpy as np
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import DataError
from penstock.core import _native as native
from penstock.engine.intake.events import EventParser, checked_time

GOOD = [
    "<urn:a> <urn:p> <urn:b> .",
    '<urn:a> <urn:p> "x" .\n<urn:a> <urn:q> "y"@en .',
    "",
    "\n  \n",
    "# a comment\n<urn:a> <urn:p> <urn:c> .",
    "_:b <urn:p> _:b .",
    "_:b <urn:p> _:c .\n_:c <urn:p> _:b .",
    "<urn:a> <urn:p> <urn:b> .\r\n<urn:a> <urn:p> <urn:c> .",
    b"<urn:a> <urn:p> <urn:b> .",
    '<urn:a> <urn:p> "\u00fc" .',
    [(rdflib.URIRef("urn:a"), rdflib.URIRef("urn:p"), rdflib.Literal("7", datatype=rdflib.XSD.integer))],
]
BAD = [
    "rubbish",
    "5 <urn:a> <urn:p> <urn:b> .",
    "<urn:a> <urn:p> <urn:b> <urn:g> .",
    "<urn:a> <urn:p> <urn:b>",
    "<urn:a> <urn:p> <urn:b> .\nrubbish",
    '"literal" <urn:p> <urn:b> .',
    b"<urn:a> <urn:p> \xff .",
    "<urn:a> <urn:p> \udc80 .",
    [(rdflib.Literal("x"), rdflib.URIRef("urn:p"), rdflib.URIRef("urn:b"))],
    [(rdflib.URIRef("urn:a"), rdflib.BNode(), rdflib.URIRef("urn:b"))],
    [("urn:a", "urn:p", "urn:b")],
    [rdflib.URIRef("urn:a")],
]


def parser(max_bytes: int = 1 << 20) -> tuple[EventParser, native.Dictionary]:
    dictionary = native.Dictionary()
    return EventParser(dictionary, max_bytes), dictionary


def shape(events, dictionary):
    """Return the triples of each event as text, blank nodes numbered within the event."""
    decode = native.LocalTerms(dictionary).decode
    columns = [decode(column) for column in (events.s, events.p, events.o)]
    out, row = [], 0
    assert events.counts is not None
    for count in events.counts.tolist():
        names: dict[str, int] = {}
        triples = []
        for i in range(row, row + count):
            terms = [column[i] for column in columns]
            triples.append(tuple(("_", names.setdefault(t[1], len(names))) if t[0] == 2 else t for t in terms))
        out.append(triples)
        row += count
    return out


@given(st.lists(st.sampled_from(GOOD + BAD), max_size=8))
@settings(max_examples=200)
def test_many_events_in_one_call_are_what_they_are_one_by_one(data):
    together, dictionary = parser()
    events, bad = together.parse(list(enumerate(data)), "nt")
    alone = [together.parse([(i, event)], "nt") for i, event in enumerate(data)]
    assert events.times.tolist() == [i for i, (one, _) in enumerate(alone) if len(one.times)]
    assert shape(events, dictionary) == [shape(one, dictionary)[0] for one, _ in alone if len(one.times)]
    assert [(b.time, b.reason) for b in bad] == [(b.time, b.reason) for _, found in alone for b in found]


@pytest.mark.parametrize("data", BAD)
def test_a_bad_event_is_refused_with_a_reason_and_its_bytes(data):
    events, bad = parser()[0].parse([(1, data)], "nt")
    assert len(events.times) == 0
    assert len(bad) == 1
    assert bad[0].reason
    assert isinstance(bad[0].data, bytes)


def test_a_blank_node_label_means_something_only_within_its_event():
    events, _ = parser()[0].parse([(1, "_:b <urn:p> _:b ."), (2, "_:b <urn:p> <urn:x> .")], "nt")
    assert events.s[0] == events.o[0]
    assert events.s[0] != events.s[1]


def test_an_event_over_the_limit_is_refused():
    text = "<urn:a> <urn:p> <urn:b> ."
    assert parser(len(text))[0].parse([(1, text)], "nt")[1] == []
    assert "max_event_bytes" in parser(len(text) - 1)[0].parse([(1, text)], "nt")[1][0].reason


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("turtle", "@prefix : <urn:> . :a :p :b ."),
        ("json-ld", '{"@id": "urn:a", "urn:p": {"@id": "urn:b"}}'),
        ("trig", "<urn:a> <urn:p> <urn:b> ."),
        ("nquads", "<urn:a> <urn:p> <urn:b> ."),
    ],
)
def test_other_formats_give_the_same_triples(syntax, text):
    parse, dictionary = parser()
    events, bad = parse.parse([(1, text)], syntax)
    assert bad == []
    assert shape(events, dictionary) == [[((1, "urn:a", "", ""), (1, "urn:p", "", ""), (1, "urn:b", "", ""))]]


@pytest.mark.parametrize(
    ("syntax", "text"), [("nquads", "<urn:a> <urn:p> <urn:b> <urn:g> ."), ("turtle", ":a"), ("x", "")]
)
def test_other_formats_are_refused_with_a_reason_as_well(syntax, text):
    assert parser()[0].parse([(1, text)], syntax)[1][0].reason


@pytest.mark.parametrize("time", [True, 1.5, "1", None, 1 << 61, -(1 << 61)])
def test_a_time_is_an_integer_in_range(time):
    with pytest.raises(DataError):
        checked_time(time)
    assert parser()[0].parse([(time, "<urn:a> <urn:p> <urn:b> .")], "nt")[1] != []


def test_numpy_times_are_times():
    assert checked_time(np.int64(5)) == 5


def test_an_event_given_as_terms_is_written_as_ntriples_when_it_is_refused():
    events, _ = parser()[0].parse([(1, iter(GOOD[-1]))], "nt")
    assert events.original(0) == b'<urn:a> <urn:p> "7"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
