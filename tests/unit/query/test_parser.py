"""The grammar: tokens, keywords, names, and all that the suites of others write."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from importlib.resources import files

import pytest
from lark import Lark, logger

from penstock import QueryError, parse
from penstock.query.algebra.tree import Bgp, Iri, Node, Project, Triple, Variable
from penstock.query.budget import PlanningLimits
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse_syntax
from penstock.query.syntax.ast_nodes import QueryText
from penstock.query.syntax.builder import TreeBuilder
from penstock.query.syntax.grammar import sparql
from penstock.query.syntax.lexis import KEYWORDS, read_source
from penstock.query.translation.iri import resolve
from support import shared


def algebra(text: str, base: str | None = None) -> Node:
    statement = parse(text, base)
    assert isinstance(statement, ContinuousQuery)
    return statement.algebra


# ---- the grammar file
def test_the_lexer_knows_exactly_the_keywords_that_the_grammar_declares() -> None:
    text = files("penstock.query.syntax.grammar").joinpath("sparql.lark").read_text("utf-8")
    declared = {word for line in re.findall(r"^%declare (.*)$", text, re.MULTILINE) for word in line.split()}
    assert declared == KEYWORDS | {"A"}


def test_the_grammar_has_no_conflicts_that_lark_resolves_silently(caplog: pytest.LogCaptureFixture) -> None:
    text = files("penstock.query.syntax.grammar").joinpath("sparql.lark").read_text("utf-8")
    level = logger.level
    logger.addHandler(caplog.handler)
    try:
        logger.setLevel(logging.DEBUG)
        Lark(text, parser="lalr", lexer="basic", start="statement", debug=True)
    finally:
        logger.setLevel(level)
        logger.removeHandler(caplog.handler)
    assert [record.message for record in caplog.records if "conflict" in record.message.lower()] == []


def test_every_rule_has_its_callback() -> None:
    def passes_on(rule) -> bool:  # `?rule` hands on its only child; `__rule` is lark's own repetition
        return rule.alias is None and (rule.options.expand1 or rule.origin.name.startswith("__"))

    names = {str(rule.alias or rule.origin.name) for rule in sparql().rules if not passes_on(rule)}
    assert sorted(name for name in names if not hasattr(TreeBuilder, name)) == []


# ---- tokens
SPO = Bgp((Triple(Variable("s"), Variable("p"), Variable("o")),))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT*{?s?p?o}",
        "select * where{?s ?p ?o.}",
        "Select $s $p $o { $s $p $o }",
        "# comment with < and '\nSELECT * # more\r{ ?s ?p # }\n ?o }#end",
        "SELECT\t*\r\n{ ?s ?p ?o }",
        "SELECT * { ?s ?p ?o . }",
    ],
)
def test_white_space_case_and_comments_do_not_matter(text: str) -> None:
    node = algebra(text)
    assert isinstance(node, Project)
    assert node.inner == SPO


def test_nil_and_anon_may_have_space_and_comments_inside() -> None:
    assert algebra("ASK { ( # nothing\n ) ?p [ # nothing\n ] }") == algebra("ASK { () ?p [] }")


def test_less_than_is_not_an_iri() -> None:
    assert algebra("ASK { FILTER(?a<?b && ?c > ?d) }") == algebra("ASK { FILTER(?a < ?b && ?c > ?d) }")


def test_an_iri_between_operators_is_read_as_the_specification_says() -> None:
    with pytest.raises(QueryError):  # longest match: `<?b&&?c>` is an IRI
        parse("ASK { FILTER(?a<?b&&?c>?d) }")


@pytest.mark.parametrize("keyword", sorted(KEYWORDS - {"A"}))
def test_a_keyword_is_never_a_bare_name(keyword: str) -> None:
    with pytest.raises(QueryError):
        parse(f"ASK {{ GRAPH {keyword.lower()} {{}} }}", "http://b/")
    name = f"{keyword}-x"
    assert f"http://b/{name}" in repr(algebra(f"ASK {{ GRAPH {name} {{}} }}", "http://b/"))


@pytest.mark.parametrize("name", ["po", "X-Lab", "Tweet_Stream", "_x", "a.b", "year", "str", "A", "FROMAGE", "truely"])
def test_bare_names_stand_wherever_an_iri_does(name: str) -> None:
    resolved = Iri(f"http://b/{name}")
    assert algebra(f"ASK {{ {name} {name} {name}. }}", "http://b/") == Bgp((Triple(resolved, resolved, resolved),))
    assert repr(resolved) in repr(algebra(f"ASK {{ GRAPH {name} {{ ?s ^{name}* 'x'^^{name} }} }}", "http://b/"))


def test_base_in_the_text_serves_bare_names_as_well() -> None:
    assert algebra("BASE <http://b/> ASK { s p o }") == algebra("ASK { s p o }", "http://b/")


def test_truth_values_are_not_names() -> None:
    assert algebra("ASK { ?s ?p true.?s ?p FALSE.?s ?p ?o }") == algebra("ASK { ?s ?p true, false, ?o }")


def test_escapes_are_replaced_before_anything_else() -> None:
    assert algebra("ASK { ?s ?p '\\u0041\\U00000042' }") == algebra("ASK { ?s ?p 'AB' }")
    assert algebra("\\u0041SK { ?\\u0073 ?p ?o }") == SPO
    assert algebra(r"ASK { ?s ?p '\\u0041' }") == algebra(r"ASK { ?s ?p '\\' }".replace(r"\\'", r"\\u0041'"))
    assert read_source(r"'\\u0041'").parsed == r"'\\u0041'"


def test_offsets_lead_back_to_the_text_as_written() -> None:
    source = read_source(r"a\u0062c\U00000064e")
    assert source.parsed == "abcde"
    assert [source.offset(i) for i in range(6)] == [0, 1, 7, 8, 18, 19]


@pytest.mark.parametrize(
    ("reference", "expected"),
    [  # RFC 3986 §5.4.1 and §5.4.2, but for those that begin with a scheme, which stay as written
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("#s", "http://a/b/c/d;p?q#s"),
        ("g#s", "http://a/b/c/g#s"),
        ("g?y#s", "http://a/b/c/g?y#s"),
        (";x", "http://a/b/c/;x"),
        ("g;x?y#s", "http://a/b/c/g;x?y#s"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../g", "http://a/g"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        (".g", "http://a/b/c/.g"),
        ("..g", "http://a/b/c/..g"),
        ("./../g", "http://a/b/g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("urn:x:../y", "urn:x:../y"),
        ("HTTP://e/./x", "HTTP://e/./x"),
    ],
)
def test_relative_references_are_resolved_as_rfc_3986_has_it(reference: str, expected: str) -> None:
    assert resolve("http://a/b/c/d;p?q", reference) == expected


def test_references_against_a_base_without_a_path() -> None:
    assert resolve("http://a", "g") == "http://a/g"
    assert resolve("urn:x:y", "#z") == "urn:x:y#z"


# ---- size and threads
def test_a_hundred_patterns_and_a_hundred_thousand_values_are_read_in_seconds() -> None:
    values = " ".join(f"<http://ex.org/{i}>" for i in range(100_000))
    patterns = " . ".join(f"?x{i} <http://ex.org/p{i}> ?x{i + 1}" for i in range(100))
    began = time.process_time()
    untimed = PlanningLimits(planning_timeout_s=0)  # the machine may be busy
    parse(f"SELECT * {{ VALUES ?x0 {{ {values} }} {patterns} }}", limits=untimed)
    assert time.process_time() - began < 10


def test_threads_parse_at_once() -> None:
    texts = [f"SELECT ?x{i} {{ ?x{i} <urn:p{i}> {i} OPTIONAL {{ ?x{i} ?y ?z }} }}" for i in range(8)]
    alone = [parse(text) for text in texts]
    found: list[list[object]] = []

    def work() -> None:
        found.append([parse(text) for _ in range(5) for text in texts])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone * 5] * 4


# ---- texts of others
def queries(folder: str) -> list[str]:
    return [path.read_text("utf-8") for path in sorted(shared.need(folder).glob("*.rq"))]


@pytest.mark.parametrize("folder", ["data/citybench/queries", "data/lsbench-ids/queries", "data/queries"])
def test_the_benchmarks_queries_are_read(folder: str) -> None:
    texts = queries(folder)
    assert texts
    for text in texts:
        assert parse(text, "http://ex.org/")


def test_csrbench_texts_are_read() -> None:
    holes = {"WSIZE": "10s", "WSLIDE": "1s"}
    for path in shared.need("suites/csrbench").glob("csparql_Q*.rq"):
        text = re.sub(r"\$\{(\w+)\}", lambda hole: holes.get(hole[1], "1"), path.read_text("utf-8"))
        assert isinstance(parse_syntax(text), QueryText)
        assert parse(text)


def test_rsp4j_texts_are_read() -> None:
    for case in json.loads(shared.need("suites/rsp4j_cases.json").read_text("utf-8")):
        statement = parse(case["query"])
        assert isinstance(statement, ContinuousQuery)
        assert [clause.name for clause in statement.windows] == [window[0] for window in case["windows"]]
