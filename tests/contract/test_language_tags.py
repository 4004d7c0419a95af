"""Language tags are equal without regard to case (RDF 1.1 Concepts §3.3): one term, in lower case, whatever
its way in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import rdflib

import penstock

if TYPE_CHECKING:
    from pathlib import Path

WAYS_IN = {
    "nt": ('<urn:a> <urn:p> "x"@EN-gb .', "nt"),
    "nquads": ('<urn:a> <urn:p> "x"@en-GB .', "nquads"),
    "turtle": ('<urn:a> <urn:p> "x"@En-Gb .', "turtle"),
    "trig": ('<urn:a> <urn:p> "x"@EN-GB .', "trig"),
    "json-ld": ('{"@id": "urn:a", "urn:p": {"@value": "x", "@language": "EN-GB"}}', "json-ld"),
    "rdf/xml": (
        """<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:u="urn:">
        <r:Description r:about="urn:a"><u:p xml:lang="EN-GB">x</u:p></r:Description></r:RDF>""",
        "xml",
    ),
}


@pytest.mark.parametrize("way", WAYS_IN)
def test_every_way_in_gives_the_same_term(way: str) -> None:
    text, form = WAYS_IN[way]
    with penstock.Engine() as engine:
        engine.load(b'<urn:a> <urn:p> "x"@en-gb .', format="nt")
        engine.load(text.encode(), format=form)
        engine.update('INSERT DATA { <urn:a> <urn:p> "x"@eN-gB }')
        (row,) = engine.query("SELECT ?o (LANG(?o) AS ?tag) { <urn:a> <urn:p> ?o }")
        assert row["o"] == rdflib.Literal("x", lang="en-gb")
        assert str(row["tag"]) == "en-gb"


def test_constants_and_computed_terms_have_it_in_lower_case_too() -> None:
    with penstock.Engine() as engine:
        engine.load(b'<urn:a> <urn:p> "x"@EN .', format="nt")
        for text in (
            'ASK { ?s ?p "x"@eN }',
            'ASK { ?s ?p ?o FILTER(sameTerm(?o, "x"@En)) }',
            'ASK { BIND(STRLANG("x", "EN") AS ?o) ?s ?p ?o }',
            'ASK { VALUES ?o { "x"@EN } ?s ?p ?o }',
            'ASK { ?s ?p ?o FILTER(LANG(?o) = "en" && LANGMATCHES(LANG(?o), "EN") && LANGMATCHES(LANG(?o), "*")) }',
            'ASK { FILTER(LANG(STRLANG("y", "De-CH")) = "de-ch" && LANG("y"@De-CH) = "de-ch") }',
            'ASK { FILTER(LANG(CONCAT("a"@EN, "b"@en)) = "en") }',
        ):
            assert engine.query(text) is True, text
        assert len(engine.query('SELECT DISTINCT ?o { VALUES ?o { "x"@EN "x"@en "x"@fr } }')) == 2


def test_a_stream_has_the_same_triple_once() -> None:
    with penstock.Engine() as engine:
        engine.declare_stream("urn:s", timing="all")
        found = engine.register("SELECT (COUNT(*) AS ?n) FROM STREAM <urn:s> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }")
        graph = rdflib.Graph()
        graph.add((rdflib.URIRef("urn:a"), rdflib.URIRef("urn:p"), rdflib.Literal("x", lang="EN")))
        engine.push("urn:s", '<urn:a> <urn:p> "x"@En .', 500)
        engine.push("urn:s", graph, 501)
        engine.advance(None, 1000)
        (evaluation,) = found.poll()
        (row,) = evaluation.answer
        assert row["n"].value == 1


def test_a_data_dir_keeps_it(tmp_path: Path) -> None:
    with penstock.Engine(data_dir=tmp_path) as engine:
        engine.load(b'<urn:a> <urn:p> "x"@EN .', format="nt")
    with penstock.Engine(data_dir=tmp_path) as engine:
        engine.load(b'<urn:a> <urn:p> "x"@en .', format="nt")
        assert len(engine.query("SELECT * { ?s ?p ?o }")) == 1
