"""Mappings by CONSTRUCT: compared with the evaluation of the query in which values replace the references; errors."""

from __future__ import annotations

import json
import re
import time
from random import Random

import pytest
from rdflib import Graph
from rdflib.compare import isomorphic

import penstock
from penstock import DataError
from penstock.mapping.mapping_limits import MappingLimits
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping

PREFIXES = "PREFIX x: <http://x/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
QUERIES = [
    "CONSTRUCT { x:s x:p $.a ; x:q $.n } WHERE {}",
    'CONSTRUCT { ?s a x:T ; x:p $.a , $.in.b } WHERE { BIND(IRI(CONCAT("urn:s:", ENCODE_FOR_URI($.a))) AS ?s) }',
    'CONSTRUCT { ?s x:p ?v } WHERE { BIND(URI(CONCAT("http://h/", $.k)) AS ?s) BIND(STRDT(STR($.n), xsd:decimal) AS ?v) }',
    'CONSTRUCT { ?s x:p ?v } WHERE { BIND(IRI(CONCAT("http://h/", $.k, "/", $.k)) AS ?s) BIND(STRLANG($.a, "de") AS ?v) }',
    "CONSTRUCT { _:b x:p $.a . x:s x:q _:b ; x:r [] } WHERE { }",
    'CONSTRUCT { ?b x:p $.a ; x:q ?t . x:s x:r ?b } WHERE { BIND(BNODE() AS ?b) BIND(CONCAT($.a, "-", STR($.n)) AS ?t) }',
    "CONSTRUCT { ?b x:p $.a } WHERE { BIND(BNODE($.k) AS ?b) }",
    'CONSTRUCT { x:s ?p "constant"@en , 5 , true , "\\"q\\"" } WHERE { BIND(IRI(CONCAT(STR("http://p/"), $.k)) AS ?p) } # $.c',
    "CONSTRUCT { x:s x:p ?c } WHERE { BIND($.in.b AS ?a) BIND(CONCAT(?a, ?a) AS ?b) BIND(CONCAT(?b, '$.a', ?b) AS ?c) }",
]
TEXTS = ["", "a", "a b", "é/ü", 'q"\\\n', "%41", "\U0001f600"]


def mapped(query, message, **settings):
    """The triples of both executors, which must be equal; None if the message has no triple."""
    mapping = StreamMapping({"construct": PREFIXES + query, **settings})
    source = SourceMessage(message if isinstance(message, bytes) else json.dumps(message).encode(), 5)
    found = []
    for run in (mapping.events, mapping.interpreted):
        try:
            (event,) = run(source)
        except DataError as error:
            if not str(error).startswith("no triple"):
                raise
            found.append(Graph())
        else:
            found.append(Graph().parse(data=event.triples, format="nt"))
    assert isomorphic(*found)
    return found[0]


def evaluated(query, message):
    """What the engine makes of the query with the values of the message in place of its references."""

    def value(found):
        at = message
        for name in found.group()[2:].split("."):
            at = at.get(name) if isinstance(at, dict) else None
        return "?unbound" if at is None else json.dumps(at, ensure_ascii=False)

    pieces = re.split(r"('[^']*'|\"(?:[^\"\\]|\\.)*\"|#.*)", query)
    text = "".join(piece if i % 2 else re.sub(r"\$[.\w]+", value, piece) for i, piece in enumerate(pieces))
    with penstock.Engine() as engine:
        return engine.query(PREFIXES + text)


@pytest.mark.parametrize("query", QUERIES)
def test_a_mapping_makes_what_the_query_means(query):
    random = Random(1)
    for _ in range(12):
        message = {"a": random.choice(TEXTS), "k": random.choice(["a", "b1"]), "n": random.choice([0, -7, 10**20])}
        message["in"] = random.choice([{"b": random.choice(TEXTS)}, {"b": None}, {}])
        if random.random() < 0.4:
            del message[random.choice(["a", "k", "n"])]
        assert isomorphic(mapped(query, message), evaluated(query, message)), message


def test_a_path_with_several_values_gives_a_triple_for_each():
    query = 'CONSTRUCT { ?s x:tag $.tags[*] } WHERE { BIND(IRI(CONCAT("urn:", $.ids[*])) AS ?s) }'
    found = mapped(query, {"tags": ["p", "q"], "ids": ["1", "2"]})
    assert sorted((str(s), str(o)) for s, _, o in found) == [(f"urn:{n}", t) for n in "12" for t in "pq"]


def test_columns_key_headers_and_timestamp():
    query = "CONSTRUCT { x:s x:a $.a ; x:b $['b c'] ; x:k $@key ; x:h $@headers.Via ; x:t $@timestamp } WHERE {}"
    mapping = StreamMapping({"construct": PREFIXES + query, "format": "csv"})
    (event,) = mapping.events(SourceMessage(b"a,b c\n1,2\n", 5, b"key", {"via": b"web"}))
    assert [line.split()[2] for line in event.triples.decode().splitlines()] == [
        '"1"',
        '"2"',
        '"key"',
        '"web"',
        '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
    ]


def test_an_invalid_iri_refuses_the_message():
    with pytest.raises(DataError, match=r"the subject \?s: .*IRI"):
        mapped('CONSTRUCT { ?s x:p 1 } WHERE { BIND(IRI(CONCAT("http://h/", $.a)) AS ?s) }', {"a": "a b"})
    with pytest.raises(DataError, match=r"\$\.a: an object where the object \$\.a needs one value"):
        mapped("CONSTRUCT { x:s x:p $.a } WHERE { }", {"a": {}})
    query = "CONSTRUCT { ?s x:p 1 } WHERE { BIND(IRI($.a) AS ?s) }"
    assert len(mapped(query, {"a": "rest"}, base="http://base/")) == 1


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT * WHERE {}", "not a CONSTRUCT query"),
        ("CONSTRUCT { $.a x:p 1 } WHERE {}", r"\$\.a: a subject cannot be a literal"),
        ("CONSTRUCT { x:s $.a 1 } WHERE {}", "a predicate cannot be a literal"),
        ("CONSTRUCT { x:s x:p ?v } WHERE {}", r"\?v has no value: add BIND"),
        ("CONSTRUCT {} WHERE {}", "no triple"),
        ("CONSTRUCT { ?s x:p 1 } WHERE { ?s x:p 1 }", "consists of BIND"),
        ("CONSTRUCT { x:s x:p $.a } WHERE { FILTER($.a > 1) }", "consists of BIND"),
        ("CONSTRUCT { x:s x:p $.a } WHERE {} LIMIT 1", "consists of BIND"),
        ("CONSTRUCT { x:s x:p $.a } FROM <urn:g> WHERE {}", "no FROM"),
        ("CONSTRUCT { x:s x:p ?v } WHERE { BIND(xsd:decimal($.a) AS ?v) }", r"write STRDT\(STR\(…\), xsd:decimal\)"),
        ("CONSTRUCT { x:s x:p ?v } WHERE { BIND($.a + 1 AS ?v) }", "the functions of a mapping are"),
        ("CONSTRUCT { x:s x:p ?v } WHERE { BIND(CONCAT(UCASE($.a)) AS ?v) }", "a text consists of"),
        ("CONSTRUCT { x:s x:p ?v } WHERE { BIND(IRI(CONCAT(ENCODE_FOR_URI($.a), $.b)) AS ?v) }", "or for none"),
        ("CONSTRUCT { x:s x:p ?v } WHERE { BIND(ENCODE_FOR_URI($.a) AS ?v) }", r"for IRI\(CONCAT"),
        ('CONSTRUCT { x:s x:p ?v } WHERE { BIND(IRI(CONCAT("a b", $.a)) AS ?v) }', "IRI"),
        ("CONSTRUCT { ?s x:p $.a[*] } WHERE { BIND(IRI($.a[*]) AS ?s) }", r"\$\.a\[\*\] may have several values"),
        ("CONSTRUCT { x:s x:p $..a } WHERE {}", "line 2, column 21"),
        ("CONSTRUCT { x:s x:p $.a } WHERE { nonsense }", "line 2, column 44"),
        ("CONSTRUCT { x:s x:p $.a } WHERE { BIND(1 AS ?x) ", "line 2"),
        ("CONSTRUCT { x:s x:p ?v } WHERE { BIND(STRLANG($.a, 'not a tag') AS ?v) }", "construct"),
        ("CONSTRUCT { <u?n:s> x:p $.a } WHERE {}", "the subject <u.n:s>: not an absolute IRI"),
        ("CONSTRUCT { x:s <u?n:p> $.a } WHERE {}", "the predicate <u.n:p>: not an absolute IRI"),
        ("CONSTRUCT { $.a x:p 'x'^^<u?n:d> } WHERE {}", "the object literal: .*absolute IRI"),
        (
            "CONSTRUCT { x:s x:p ?v } WHERE { BIND(STRDT($.a, <u?n:d>) AS ?v) }",
            "the object .v: not an absolute IRI",
        ),
    ],
)
def test_what_a_mapping_cannot_do_is_an_error(query, reason):
    with pytest.raises(DataError, match=reason):
        mapped(query, {"a": "b"})


def test_expressions_that_are_deep_or_grow_exponentially_end():
    with pytest.raises(DataError):
        mapped("CONSTRUCT { x:s x:p ?v } WHERE { BIND(" + "STR(" * 3000 + "$.a" + ")" * 3000 + " AS ?v) }", {"a": "b"})
    chain = "BIND($.a AS ?v0) " + " ".join(f"BIND(CONCAT(?v{n}, ?v{n}) AS ?v{n + 1})" for n in range(60))
    began = time.process_time()
    with pytest.raises(DataError, match="max_terms"):
        mapped(f"CONSTRUCT {{ x:s x:p ?v60 }} WHERE {{ {chain} }}", {"a": "b"})
    assert time.process_time() - began < 5
    many = ", ".join(f"$.k{n}" for n in range(50_000))
    with pytest.raises(DataError, match=r"references \(max_terms\)"):
        mapped(f"CONSTRUCT {{ x:s x:p ?v }} WHERE {{ BIND(CONCAT({many}) AS ?v) }}", {"a": "b"})
    with pytest.raises(DataError, match="max_mapping_bytes"):
        StreamMapping({"construct": QUERIES[0]}, MappingLimits(max_mapping_bytes=10))


def test_references_in_strings_are_not_replaced():
    strings = r'''CONCAT("$.a", '\'$.a', """a" \""" $.a""", STR($.a))'''
    [(_, _, text)] = mapped(f"CONSTRUCT {{ x:s x:p ?v }} WHERE {{ BIND({strings} AS ?v) }}", {"a": "b"})
    assert str(text) == "$.a" + "'$.a" + 'a" """ $.a' + "b"


@pytest.mark.parametrize("start", ["'", '"', "'''", '"""'])
def test_strings_without_an_end_take_linear_time(start):
    began = time.process_time()
    with pytest.raises(DataError, match="construct"):
        mapped("CONSTRUCT { x:s x:p ?v } WHERE { BIND(" + start + "\\'\\\"" * 100_000 + " AS ?v) }", {"a": "b"})
    assert time.process_time() - began < 5


def test_a_column_of_csv_is_one_name():
    with pytest.raises(DataError, match="not a column"):
        StreamMapping({"construct": PREFIXES + "CONSTRUCT { x:s x:p $.a.b } WHERE {}", "format": "csv"})
