"""WITH ENTAILMENT: its syntax, the refused forms, and the limit (docs/language.md)."""

from __future__ import annotations

import pytest

import penstock
from penstock import QueryError, QueryLimitError, parse
from penstock.engine import Limits
from penstock.query.resolve import as_query

RDFS = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> "


@pytest.mark.parametrize("regime", ["RDFS", "rdfs", "<http://www.w3.org/ns/entailment/RDFS>"])
@pytest.mark.parametrize(
    "text",
    [
        "SELECT * {} WHERE {{ ?s ?p ?o }}",
        "SELECT * FROM <urn:g> {} {{ ?s ?p ?o }}",
        "ASK {} {{ ?s ?p ?o }}",
        "CONSTRUCT {{ ?s ?p ?o }} {} WHERE {{ ?s ?p ?o }}",
        "REGISTER QUERY q AS SELECT * FROM STREAM <urn:s> [RANGE 1s STEP 1s] {} {{ ?s ?p ?o }}",
    ],
)
def test_the_clause_stands_beside_dataset_clauses(text: str, regime: str) -> None:
    assert as_query(parse(text.format(f"WITH ENTAILMENT {regime}"))).entailed
    assert not as_query(parse(text.format(""))).entailed


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("SELECT * WITH ENTAILMENT OWL { ?s ?p ?o }", "unknown entailment regime OWL", 26),
        ("SELECT * WITH ENTAILMENT RDFS WITH ENTAILMENT RDFS { ?s ?p ?o }", "one WITH ENTAILMENT clause", 31),
        ("DESCRIBE ?s WITH ENTAILMENT RDFS { ?s ?p ?o }", "DESCRIBE cannot be used with ENTAILMENT", 1),
        ("SELECT * WITH ENTAILMENT RDFS { ?s !<urn:p> ?o }", "negated property set", 33),
        ("SELECT * WITH ENTAILMENT RDFS { ?s (a|<urn:p>)* ?o }", "rdf:type cannot be repeated", 37),
    ],
)
def test_refused_forms_have_a_position(text: str, message: str, column: int) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (1, column)


def test_the_closure_of_the_schema_has_a_limit() -> None:
    with penstock.Engine(limits=Limits(max_entailment_pairs=50)) as engine:
        chain = " . ".join(f"<urn:c{i}> rdfs:subClassOf <urn:c{i + 1}>" for i in range(9))
        engine.update(f"{RDFS} INSERT DATA {{ {chain} . <urn:x> a <urn:c0> }}")
        text = "SELECT ?c WITH ENTAILMENT RDFS { <urn:x> a ?c }"
        with pytest.raises(QueryLimitError, match="max_entailment_pairs") as caught:
            engine.query(text)
        assert caught.value.column == text.index("WITH") + 1
        engine.update(f"{RDFS} DELETE DATA {{ <urn:c4> rdfs:subClassOf <urn:c5> }}")
        assert len(engine.query(text)) == 5


def test_a_standing_query_fails_while_its_schema_exceeds_the_limit_and_then_goes_on() -> None:
    with penstock.Engine(limits=Limits(max_entailment_pairs=50)) as engine:
        engine.declare_stream("urn:s", timing="all")
        query = engine.register(
            "SELECT ?x FROM STREAM <urn:s> [RANGE 1s STEP 1s] WITH ENTAILMENT RDFS { ?x a <urn:c9> }"
        )
        chain = " . ".join(f"<urn:c{i}> rdfs:subClassOf <urn:c{i + 1}>" for i in range(9))
        found = []
        for second, change in enumerate(
            (
                f"{RDFS} INSERT DATA {{ <urn:c0> rdfs:subClassOf <urn:c9> }}",
                f"{RDFS} INSERT DATA {{ {chain} }}",
                f"{RDFS} DELETE DATA {{ {chain} }}",
                f"{RDFS} DELETE DATA {{ <urn:c0> rdfs:subClassOf <urn:c9> }}",
            )
        ):
            engine.update(change)
            engine.push("urn:s", "<urn:x> a <urn:c0> .", second * 1000 + 500, "turtle")
            engine.advance("urn:s", (second + 1) * 1000)
            (evaluation,) = query.poll()
            found.append(str(evaluation.error) if evaluation.error else len(evaluation.answer))
    assert found[0] == 1
    assert "max_entailment_pairs" in found[1]
    assert found[2:] == [1, 0]


def test_a_class_is_no_parameter_of_a_group_and_other_constants_are() -> None:
    with penstock.Engine() as engine:
        engine.declare_stream("urn:s", timing="all")
        engine.update(f"{RDFS} INSERT DATA {{ <urn:A> rdfs:subClassOf <urn:B> }}")
        stream = "FROM STREAM <urn:s> [RANGE 1s STEP 1s] WITH ENTAILMENT RDFS"
        for name, where in {
            "q1": "?x a <urn:A>",
            "q2": "?x a <urn:B>",
            "q3": "?x <urn:p> 1",
            "q4": "?x <urn:p> 2",
        }.items():
            engine.register(f"REGISTER QUERY {name} AS SELECT * {stream} {{ {where} }}")
        engine.push("urn:s", "<urn:x> a <urn:A> ; <urn:p> 2 .", 500, "turtle")
        engine.advance("urn:s", 1000)
        answers = {name: len(query.poll()[0].answer) for name, query in engine.queries.items()}
        assert answers == {"q1": 1, "q2": 1, "q3": 0, "q4": 1}
        assert "queries in its group: 2" in engine.explain(engine.queries["q3"])


def test_superproperties_follow_from_subpropertyof_alone() -> None:
    owl = "http://www.w3.org/2002/07/owl#"
    with penstock.Engine() as engine:
        engine.update(
            f"{RDFS} INSERT DATA {{ <urn:p> rdfs:subPropertyOf <urn:q> . <urn:q> <{owl}inverseOf> <urn:p> ."
            " <urn:x> <urn:q> <urn:y> }"
        )
        stated = engine.query(f"{RDFS} SELECT * WITH ENTAILMENT RDFS {{ <urn:p> rdfs:subPropertyOf ?above }}")
        assert [str(row["above"]) for row in stated] == ["urn:q"]
        assert engine.query("ASK WITH ENTAILMENT RDFS { <urn:y> <urn:q> <urn:x> }")


_SUBPROPERTIES = (
    f"{RDFS} INSERT DATA {{ <urn:q> rdfs:subPropertyOf <urn:p> . <urn:r> rdfs:subPropertyOf <urn:p> ."
    " <urn:i> <http://www.w3.org/2002/07/owl#inverseOf> <urn:p> ."
    " <urn:a> <urn:p> <urn:b> ; <urn:q> <urn:b> ; <urn:r> 1 . <urn:c> <urn:i> <urn:a> . <urn:d> <urn:i> 2 ."
    " GRAPH <urn:g> { <urn:a> <urn:q> <urn:e> } }"
)


def test_a_property_and_those_that_entail_it_are_one_scan_without_duplicates() -> None:
    with penstock.Engine() as engine:
        engine.update(_SUBPROPERTIES)
        text = "SELECT * WITH ENTAILMENT RDFS { ?x <urn:p> ?y }"
        assert "scan ?x <urn:p>|" in engine.explain(text)
        assert "distinct" not in engine.explain(text)
        assert sorted(str(row["y"]) for row in engine.query(text)) == ["1", "urn:b", "urn:c"]
        tested = "SELECT * WITH ENTAILMENT RDFS { VALUES (?x ?y) { (<urn:a> <urn:c>) (2 <urn:d>) } ?x <urn:p> ?y }"
        assert [str(row["y"]) for row in engine.query(tested)] == ["urn:c"]


def test_with_a_graph_variable_there_is_a_scan_for_each_predicate() -> None:
    with penstock.Engine() as engine:
        engine.update(_SUBPROPERTIES)
        text = "SELECT * WITH ENTAILMENT RDFS { GRAPH ?g { ?x <urn:p> ?y } }"
        assert "|" not in engine.explain(text)
        assert [str(row["y"]) for row in engine.query(text)] == ["urn:e"]
        named = "SELECT ?y FROM <urn:g> FROM <urn:x-penstock:stored> WITH ENTAILMENT RDFS { <urn:a> <urn:p> ?y }"
        assert sorted(str(row["y"]) for row in engine.query(named)) == ["1", "urn:b", "urn:c", "urn:e"]


_TYPES = (
    f"{RDFS} INSERT DATA {{ <urn:B> rdfs:subClassOf <urn:A> . <urn:p> rdfs:domain <urn:A> . <urn:q> rdfs:range <urn:A> ."
    " <urn:a> a <urn:A>, <urn:B> . <urn:b> a <urn:B> . <urn:c> <urn:p> 1, 2 . <urn:x> <urn:q> <urn:d>, <urn:a>, 5 ."
    " <urn:z> <urn:r> <urn:a>, <urn:b>, <urn:c>, <urn:d>, <urn:e>, 5 }"
)


def test_types_are_tests_of_edges_without_their_other_ends() -> None:
    with penstock.Engine() as engine:
        engine.update(_TYPES)
        text = "SELECT ?x WITH ENTAILMENT RDFS { <urn:z> <urn:r> ?x . ?x a <urn:A> }"
        explained = engine.explain(text)
        for scan in ("#type> [2 terms]", "?x <urn:p> []", "[] <urn:q> ?x"):
            assert f"{scan} [stored]" in explained
        assert sorted(str(row["x"]) for row in engine.query(text)) == ["urn:a", "urn:b", "urn:c", "urn:d"]
        alone = engine.query("SELECT ?x WITH ENTAILMENT RDFS { ?x a <urn:A> }")
        assert sorted(str(row["x"]) for row in alone) == ["urn:a", "urn:b", "urn:c", "urn:d"]


def test_a_type_that_only_subclasses_entail_is_one_scan() -> None:
    with penstock.Engine() as engine:
        engine.update(_TYPES)
        engine.update(f"{RDFS} INSERT DATA {{ <urn:B> rdfs:subClassOf <urn:S> . <urn:C> rdfs:subClassOf <urn:S> }}")
        text = "SELECT ?x WITH ENTAILMENT RDFS { <urn:z> <urn:r> ?x . ?x a <urn:S> }"
        assert "semijoin" not in engine.explain(text)
        assert sorted(str(row["x"]) for row in engine.query(text)) == ["urn:a", "urn:b"]
