"""Strider's texts (ISWC'17 §3.1): one window, several queries, reasoning."""

from __future__ import annotations

import pytest

import penstock
from penstock import QueryError, parse_strider
from penstock.query.ir import Form, TimeRange
from penstock.query.resolve import as_query

STREAM = "urn:x:observations"
TEXT = """# Two queries over one stream of sensor observations.
STREAMING { WINDOW [10 Seconds] SLIDE [10 Seconds] BATCH [5 Seconds] }
REGISTER {
  QUERYID [Q8]
  REASONING [LUBM]
  SPARQL [
    PREFIX ssn: <http://purl.oclc.org/NET/ssnx/ssn#>
    SELECT ?sensor ?value { ?o a ssn:Observation ; ssn:observedBy ?sensor ; ssn:result [ ssn:value ?value ] # ] }
      FILTER(?value != "]}") } ]
  QUERYID [Q9] REASONING [OFF] SPARQL [ CONSTRUCT { ?o <urn:x:seen> [] } WHERE { ?o a <urn:x:Reading> } ]
}
REGISTER { QUERYID [Q10] SPARQL [ask { ?s ?p ?o }] }
"""


def test_a_text_gives_each_query_the_window_and_the_reasoning() -> None:
    text = parse_strider(TEXT, STREAM)
    assert (list(text.queries), text.batch_ms) == (["Q8", "Q9", "Q10"], 5_000)
    queries = {name: as_query(penstock.parse(query)) for name, query in text.queries.items()}
    for name, query in queries.items():
        assert query.name == name
        (window,) = query.windows
        assert (window.stream, window.in_default, window.range) == (STREAM, True, TimeRange(10_000, 10_000))
    assert [query.form for query in queries.values()] == [Form.SELECT, Form.CONSTRUCT, Form.ASK]
    assert [query.entailed for query in queries.values()] == [True, False, False]


def test_the_queries_run_together() -> None:
    text = parse_strider(TEXT, STREAM)
    ssn = "http://purl.oclc.org/NET/ssnx/ssn#"
    with penstock.Engine() as engine:
        schema = "http://www.w3.org/2000/01/rdf-schema#subClassOf"
        engine.update(f"INSERT DATA {{ <urn:x:Reading> <{schema}> <{ssn}Observation> }}")
        engine.declare_stream(STREAM, timing="all", batch_ms=text.batch_ms or 100)
        queries = {name: engine.register(query) for name, query in text.queries.items()}
        event = f"<urn:x:o> a <urn:x:Reading> ; <{ssn}observedBy> <urn:x:s> ; <{ssn}result> [ <{ssn}value> 7 ] ."
        engine.push(STREAM, event, 3_000, "turtle")
        engine.advance(STREAM, 10_000)
        answers = {name: [evaluation.answer for evaluation in query.poll()] for name, query in queries.items()}
    assert [[str(term) for term in row.values()] for row in answers["Q8"][0]] == [["urn:x:s", "7"]]
    assert len(answers["Q9"][0]) == 1
    assert answers["Q10"] == [True]


def test_an_error_in_a_query_has_the_line_of_the_text() -> None:
    (query,) = parse_strider(
        "STREAMING { WINDOW [1 Minute] }\nREGISTER { QUERYID [Q] SPARQL [\nSELECT ?s\nWHERE { ?s ?p }\n] }", STREAM
    ).queries.values()
    with pytest.raises(QueryError, match="expected a term") as caught:
        penstock.parse(query)
    assert caught.value.line == 4


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("REGISTER { }", "expected STREAMING, found 'REGISTER'", (1, 1)),
        ("STREAMING { SLIDE [1 Second] }", "STREAMING needs a WINDOW", (1, 1)),
        ("STREAMING { WINDOW [1 Second] }", "registers no query", (1, 32)),
        ("STREAMING { WINDOW [0 Seconds] }", "greater than zero", (1, 21)),
        ("STREAMING { WINDOW [1 fortnight] }", "not a duration", (1, 21)),
        ("STREAMING { WINDOW [1 s] WINDOW [2 s] }", "WINDOW stands twice", (1, 26)),
        (
            "STREAMING { WINDOW [1 s] }\nREGISTER { QUERYID [Q] SPARQL [ SELECT * { ?s ?p ?o } }",
            "unexpected '}'",
            (2, 55),
        ),
        ("STREAMING { WINDOW [1 s] } REGISTER { QUERYID [Q] SPARQL [ SELECT * {", "is not closed", (1, 69)),
        ("STREAMING { WINDOW [1 s] } REGISTER { QUERYID [a b] SPARQL [ ] }", "QUERYID needs a name", (1, 39)),
        ("STREAMING { WINDOW [1 s] } REGISTER { QUERYID [Q] SPARQL [ ] }", "Q has no text", (1, 60)),
        ("STREAMING { WINDOW [1 s] } REGISTER { QUERYID [Q] REASONING [] SPARQL [ ] }", "REASONING names", (1, 51)),
    ],
)
def test_bad_texts_are_refused_at_their_position(text: str, message: str, place: tuple[int, int]) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse_strider(text, STREAM)
    assert (caught.value.line, caught.value.column) == place


def test_cqels_2_may_have_slide_and_step() -> None:
    text = "SELECT * {{ STREAM <urn:s> [RANGE 3s SLIDE 1s STEP {}] {{ ?s ?p ?o }} }}"
    for step in ("1s", "2s"):
        (window,) = as_query(penstock.parse(text.format(step))).windows
        assert window.range == TimeRange(3_000, int(step[0]) * 1_000)
    with pytest.raises(QueryError, match="STEP must be a multiple of SLIDE") as caught:
        penstock.parse(text.format("1500ms"))
    assert (caught.value.line, caught.value.column) == (1, text.format("1500ms").index("1500ms") + 1)
