"""Documents of slow formats are converted outside of the engine's lock, and give what they gave under it."""

from __future__ import annotations

import threading

import pytest

import penstock
from penstock.core import _native as native
from penstock.engine.intake import events as intake
from penstock.engine.intake.events import EventParser
from penstock.errors import DataError
from penstock.rdf import parsing
from penstock.rdf.formats import Format
from penstock.rdf.parsing import Converted, parse

TURTLE = "@prefix p: <urn:p:> .\np:a p:b [ p:c (1 2 _:x) ; p:d [] ] . _:x p:e 'y'@en ."
DOCUMENTS = [
    ("turtle", TURTLE),
    ("turtle", TURTLE + "\n" + " ".join(f"p:s{i} p:b [ p:c _:x, {i} ] ." for i in range(2_000))),
    ("rdf/xml", '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="urn:p:"><r:Description><p:b>x</p:b></r:Description></r:RDF>'),
    ("json-ld", '{"@context": {"b": "urn:p:b"}, "b": [1, {"b": {"@list": [true, 2]}}]}'),
]  # fmt: skip
BAD = [("turtle", "p:a p:b"), ("json-ld", '{"a": 1}'), ("rdf/xml", "<!DOCTYPE x>"), ("turtle", "\ud800"), ("trig", "<urn:g> { <urn:a> <urn:b> 1 }")]  # fmt: skip


def named(syntax: str) -> str:
    return {"rdf/xml": "application/rdf+xml", "json-ld": "application/ld+json"}.get(syntax, syntax)


@pytest.mark.parametrize(("syntax", "text"), DOCUMENTS)
def test_a_converted_document_gives_the_same_ids(syntax, text):
    first, second = native.Dictionary(), native.Dictionary()
    fmt = Format.named(named(syntax))
    one = parse(first, text, fmt)
    made = Converted.of(text.encode(), fmt, 1 << 20)
    assert made is not None
    two = made.quads(second)
    for name in ("subjects", "predicates", "objects", "graphs"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()
    assert Converted.of(text.encode(), fmt, 10) is None


def test_events_are_the_same_whether_they_were_converted_or_not(monkeypatch):
    for syntax in {syntax for syntax, _ in (*DOCUMENTS, *BAD)}:
        texts = [text for kind, text in (*DOCUMENTS, *BAD) if kind == syntax]
        events = [(1_000 + i, text) for i, text in enumerate(texts)]
        found = []
        for budget in (0, 100, 1 << 30):
            monkeypatch.setattr(intake, "CONVERTED_BYTES", budget)
            parser = EventParser(native.Dictionary(), 1 << 20)
            good, bad = parser.parse(events, named(syntax), parser.convert(events, named(syntax)))
            found.append((good.times.tolist(), good.s.tolist(), good.p.tolist(), good.o.tolist(), bad))
        assert found[0] == found[1] == found[2]


def test_a_document_that_parses_slowly_keeps_no_other_producer_waiting(monkeypatch):
    slow, parsing_begins = threading.Event(), threading.Event()
    original = parsing._nquads

    def waiting(*given, **named):
        parsing_begins.set()
        assert slow.wait(30)
        yield from original(*given, **named)

    monkeypatch.setattr(parsing, "_nquads", waiting)
    with penstock.Engine() as engine:
        engine.declare_stream("urn:s", timing="all")
        reports = []
        thread = threading.Thread(target=lambda: reports.append(engine.push("urn:s", TURTLE, 2_000, "turtle")))
        thread.start()
        assert parsing_begins.wait(30)
        assert engine.push("urn:s", b"<urn:a> <urn:b> <urn:c> .", 1_000).accepted == 1
        engine.declare_stream("urn:t", timing="all")
        assert set(engine.streams) == {"urn:s", "urn:t"}
        assert not reports
        slow.set()
        thread.join(30)
        assert reports[0].accepted == 1
        with pytest.raises(DataError):
            engine.push("urn:s", "p:a", 3_000, "turtle")
        assert len(engine.dead_letters()) == 1
