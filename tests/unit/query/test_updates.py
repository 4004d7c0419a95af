"""Updates: every operation of SPARQL 1.1 Update is read, checked and located."""

from __future__ import annotations

import pytest

from penstock import QueryError, QueryLimitError, parse
from penstock.query.algebra.tree import Bgp, BlankNode, Graph, Iri, Join, Project, Triple, Variable
from penstock.query.budget import PlanningLimits
from penstock.query.ir import ChangeData, ChangeGraph, Dataset, LoadDocument, Modify, TransferGraph, Update
from penstock.query.supported_updates import check_data, check_supported

PREFIX = "PREFIX : <urn:x:> "
G, H, P = Iri("urn:x:g"), Iri("urn:x:h"), Iri("urn:x:p")
SUBJECT, OBJECT, GRAPH = Variable("s"), Variable("o"), Variable("v")


def update(text: str) -> Update:
    statement = parse(PREFIX + text)
    assert isinstance(statement, Update)
    return statement


def only(text: str) -> object:
    (operation,) = update(text).operations
    return operation


def modify(text: str) -> Modify:
    operation = only(text)
    assert isinstance(operation, Modify)
    return operation


def fault(text: str) -> QueryError:
    with pytest.raises(QueryError) as caught:
        parse(PREFIX + text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("LOAD :g", LoadDocument(G, None, silent=False)),
        ("LOAD SILENT :g INTO GRAPH :h", LoadDocument(G, H, silent=True)),
        ("CLEAR DEFAULT", ChangeGraph("CLEAR", "DEFAULT", silent=False)),
        ("drop silent graph :g", ChangeGraph("DROP", G, silent=True)),
        ("DROP NAMED", ChangeGraph("DROP", "NAMED", silent=False)),
        ("CLEAR ALL", ChangeGraph("CLEAR", "ALL", silent=False)),
        ("CREATE GRAPH :g", ChangeGraph("CREATE", G, silent=False)),
        ("ADD :g TO GRAPH :h", TransferGraph("ADD", G, H, silent=False)),
        ("MOVE SILENT DEFAULT TO :h", TransferGraph("MOVE", None, H, silent=True)),
        ("COPY GRAPH :g TO DEFAULT", TransferGraph("COPY", G, None, silent=False)),
        ("COPY <urn:x-penstock:stored> TO :h", TransferGraph("COPY", None, H, silent=False)),
        ("CLEAR GRAPH <urn:x-penstock:stored>", ChangeGraph("CLEAR", "DEFAULT", silent=False)),
        ("DELETE DATA { :g :p :h }", ChangeData(insert=False, quads=((None, Triple(G, P, H)),))),
        (
            "INSERT DATA { GRAPH :g { :g :p :h } GRAPH <urn:x-penstock:stored> { :h :p :h } }",
            ChangeData(insert=True, quads=((G, Triple(G, P, H)), (None, Triple(H, P, H)))),
        ),
    ],
)
def test_operations(text: str, operation: object) -> None:
    assert only(text) == operation


def test_a_text_has_operations_with_prologues_between_them() -> None:
    operations = update("CREATE GRAPH :g ; PREFIX : <urn:y:> BASE <urn:z:/> LOAD :d INTO GRAPH <e> ;").operations
    assert operations == (
        ChangeGraph("CREATE", G, silent=False),
        LoadDocument(Iri("urn:y:d"), Iri("urn:z:/e"), silent=False),
    )


def test_a_change_by_a_pattern_has_templates_and_a_query() -> None:
    found = modify("DELETE { ?s :p ?o } INSERT { GRAPH ?v { ?s :p _:b , [] } } WHERE { ?s :p ?o . GRAPH ?v {} }")
    assert found.delete == ((None, Triple(SUBJECT, P, OBJECT)),)
    assert found.insert == ((GRAPH, Triple(SUBJECT, P, BlankNode("b"))), (GRAPH, Triple(SUBJECT, P, BlankNode("b0"))))
    assert found.query.variables == (SUBJECT, OBJECT, GRAPH)
    assert found.query.algebra == Project(
        Join(Bgp((Triple(SUBJECT, P, OBJECT),)), Graph(GRAPH, Bgp(()))), (SUBJECT, OBJECT, GRAPH)
    )
    assert not found.query.continuous


def test_delete_where_uses_the_template_as_the_pattern() -> None:
    found = modify("DELETE WHERE { ?s :p ?o GRAPH :g { ?s :p :h } }")
    assert found.delete == ((None, Triple(SUBJECT, P, OBJECT)), (G, Triple(SUBJECT, P, H)))
    assert found.query.algebra == Project(
        Join(Bgp((Triple(SUBJECT, P, OBJECT),)), Graph(G, Bgp((Triple(SUBJECT, P, H),)))), (SUBJECT, OBJECT)
    )
    assert found.insert == ()


def test_with_is_the_default_graph_of_templates_and_without_using_of_the_pattern() -> None:
    found = modify("WITH :g INSERT { ?s :p 1 . GRAPH :h { ?s :p 2 } } WHERE { ?s :p ?o }")
    assert [graph for graph, _ in found.insert] == [G, H]
    assert found.delete == ()
    assert found.query.dataset == Dataset((G,), all_named=True)
    used = modify("WITH :g DELETE { ?s :p 1 } USING :h USING NAMED :g WHERE { ?s :p ?o }")
    assert [graph for graph, _ in used.delete] == [G]
    assert used.query.dataset == Dataset((H,), (G,))


@pytest.mark.parametrize(
    ("text", "message", "construct"),
    [
        ("DELETE DATA { ?s :p 1 }", "a variable cannot stand in DELETE DATA", "?s"),
        ("DELETE DATA { _:a :p 1 }", "a blank node cannot stand in DELETE DATA", "_:a"),
        ("DELETE DATA { :a :p [] }", "a blank node cannot stand in DELETE DATA", "["),
        ("DELETE DATA { :a :p (1) }", "a blank node cannot stand in DELETE DATA", "("),
        ("DELETE WHERE { ?s :p _:a }", "a blank node cannot stand in a DELETE template", "_:a"),
        ("DELETE { ?s :p [] } WHERE {}", "a blank node cannot stand in a DELETE template", "["),
        ("INSERT DATA { GRAPH ?g { :s :p 1 } }", "a variable cannot stand in INSERT DATA", "?g"),
        ("INSERT DATA { GRAPH ?g { } }", "a variable cannot stand in INSERT DATA", "?g"),
        ("INSERT { ?s :p* 1 } WHERE {}", "a property path cannot stand in an INSERT template", ":p"),
        ("INSERT DATA { _:a :p 1 } ; CREATE GRAPH :g ; INSERT DATA { _:a :p 1 }", "two INSERT DATA", "_:a"),
        ("INSERT {} WHERE { STREAM :s [NOW] {} }", "an update reads the stored graph: it cannot have a window", ":s"),
        ("INSERT {} WHERE { SERVICE :s {} }", "SERVICE", "SERVICE"),
        ("INSERT {} WHERE { _:a :p 1 OPTIONAL {} _:a :p 1 }", "two basic graph patterns", "_:a"),
        ("CLEAR GRAPH x:g", "prefix 'x:' is not declared", "x:g"),
    ],
)
def test_errors_name_the_construct(text: str, message: str, construct: str) -> None:
    caught = fault(text)
    assert message in caught.message
    assert (PREFIX + text)[caught.column - 1 :].startswith(construct)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT { _:a :p 1 } WHERE { _:a :p 1 } ; INSERT { _:a :p 2 } WHERE { _:a :p 2 }",
        "INSERT DATA { _:a :p 1 } ; INSERT { _:a :p 2 } WHERE { _:a :p 2 }",
        "DELETE { ?s :p () } INSERT {} WHERE {}",
        "DELETE WHERE {}",
    ],
)
def test_blank_nodes_are_local_to_an_operation(text: str) -> None:
    update(text)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("INSERT DATA {} ; DELETE WHERE { ?s ?p ?o }", "DELETE … WHERE needs an evaluation", 18),
        ("WITH :g INSERT { ?s :p 1 } WHERE {}", "INSERT … WHERE needs an evaluation", 9),
        ("DELETE DATA {} ; CLEAR ALL", "CLEAR needs an evaluation", 18),
        ("MOVE :g TO :h", "MOVE needs an evaluation", 1),
        ("LOAD SILENT :g", "LOAD needs an evaluation", 1),
        ("LOAD :g", "LOAD needs an evaluation", 1),
    ],
)
def test_what_is_not_data_is_an_error_with_its_position(text: str, message: str, column: int) -> None:
    with pytest.raises(QueryError) as caught:
        check_data(update("\n" + text))
    assert caught.value.message.startswith(message)
    assert (caught.value.line, caught.value.column) == (2, column)


def test_data_and_a_load_that_may_fail_silently_are_no_error() -> None:
    check_data(update("INSERT DATA { :a :p 1 } ; DELETE DATA { :a :p 2 }"))
    check_supported(update("LOAD SILENT :g"))


def test_data_have_a_limit_of_their_own_and_patterns_that_of_queries() -> None:
    data = "INSERT DATA { " + ":a :p [] . " * 600 + "}"
    where = "INSERT { ?s :p 1 } WHERE { " + "?s :p 1 . " * 30 + "}"
    limits = PlanningLimits(max_query_tokens=150)
    for text in (f"{data} ; {where}", f"{where} ; {data}"):
        parse(PREFIX + text, limits=limits)
        with pytest.raises(QueryLimitError, match="has more than 150 words and signs"):
            parse(PREFIX + f"{text} ; {where}", limits=limits)
        with pytest.raises(QueryLimitError, match="has more than 2,000 words and signs"):
            parse(PREFIX + text, limits=PlanningLimits(max_query_tokens=150, max_update_tokens=2000))


def test_data_are_not_timed_and_patterns_are() -> None:
    limits = PlanningLimits(planning_timeout_s=0.05)
    data = "INSERT DATA { " + ":a :p [] . " * 30_000 + "}"
    parse(PREFIX + data, limits=limits)
    where = "INSERT {} WHERE { " + "?s :p [] . " * 10_000 + "}"
    with pytest.raises(QueryLimitError, match="planning_timeout_s"):
        parse(PREFIX + data + " ; " + where, limits=limits)
