"""From text to algebra: what SPARQL 1.1 §18.2 says, node by node."""

from __future__ import annotations

import pytest

from penstock import parse
from penstock.query.algebra.tree import (
    AggregateCall,
    Alternative,
    Bgp,
    BlankNode,
    Call,
    Distinct,
    Exists,
    Extend,
    Filter,
    Graph,
    Group,
    Inverse,
    Iri,
    Join,
    LeftJoin,
    Link,
    Literal,
    Minus,
    NegatedSet,
    Node,
    OneOrMore,
    OrderBy,
    OrderKey,
    PathTriple,
    Project,
    Sequence,
    Slice,
    Triple,
    Union,
    Values,
    Variable,
    ZeroOrMore,
    ZeroOrOne,
)
from penstock.query.ir import ContinuousQuery, Form, Update

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
NIL = Iri(RDF + "nil")
BASE = "http://ex.org/"


def iri(name: str) -> Iri:
    return Iri(BASE + name)


def var(name: str) -> Variable:
    return Variable(name)


def integer(number: int) -> Literal:
    return Literal(str(number), XSD + "integer")


def text(value: str) -> Literal:
    return Literal(value, XSD + "string")


def triple(s: str, p: str, o: str) -> Triple:
    """`?x` is a variable, anything else an IRI below the base."""
    s_, p_, o_ = (var(term[1:]) if term[0] == "?" else iri(term) for term in (s, p, o))
    return Triple(s_, p_, o_)


def query(body: str) -> ContinuousQuery:
    statement = parse(f"PREFIX : <{BASE}> {body}", base=BASE)
    assert isinstance(statement, ContinuousQuery)
    return statement


def pattern(body: str) -> Node:
    """The algebra of a group, as ASK has it: without projection."""
    return query(f"ASK {{ {body} }}").algebra


def expr(body: str):
    node = pattern(f"BIND({body} AS ?z)")
    assert isinstance(node, Extend)
    return node.expr


SPO = Bgp((triple("?s", "p", "?o"),))
QQQ = Bgp((triple("?q", "q", "?r"),))


# ---- groups
def test_an_empty_group_is_the_empty_basic_graph_pattern() -> None:
    assert pattern("") == Bgp(())
    assert pattern("{} {}") == Bgp(())


def test_triples_separated_by_a_filter_are_one_basic_graph_pattern() -> None:
    assert pattern("?s :p ?o FILTER(?o) ?q :q ?r") == Filter(
        Bgp((triple("?s", "p", "?o"), triple("?q", "q", "?r"))), var("o")
    )


def test_filters_apply_to_the_whole_group_wherever_they_stand() -> None:
    assert pattern("FILTER(?r) FILTER(?o) ?s :p ?o OPTIONAL { ?q :q ?r }") == Filter(
        LeftJoin(SPO, QQQ, None), Call("and", (var("r"), var("o")))
    )


def test_a_filter_in_an_optional_becomes_its_condition() -> None:
    assert pattern("?s :p ?o OPTIONAL { ?q :q ?r FILTER(?o) }") == LeftJoin(SPO, QQQ, var("o"))


def test_a_filter_in_a_group_in_an_optional_stays_in_the_group() -> None:
    assert pattern("?s :p ?o OPTIONAL { { ?q :q ?r FILTER(?o) } }") == LeftJoin(SPO, Filter(QQQ, var("o")), None)


def test_an_optional_first_in_its_group_is_joined_to_the_unit() -> None:
    assert pattern("OPTIONAL { ?s :p ?o }") == LeftJoin(Bgp(()), SPO, None)


def test_groups_are_joined_in_order() -> None:
    assert pattern("{ ?s :p ?o } { ?q :q ?r }") == Join(SPO, QQQ)


def test_union_has_all_its_branches_in_one_node() -> None:
    assert pattern("{ ?s :p ?o } UNION { ?q :q ?r } UNION {}") == Union((SPO, QQQ, Bgp(())))


def test_minus_applies_to_what_stands_before_it() -> None:
    assert pattern("?s :p ?o MINUS { ?q :q ?r } { ?q :q ?r }") == Join(Minus(SPO, QQQ), QQQ)


def test_graph_takes_a_name_or_a_variable() -> None:
    assert pattern("GRAPH :g { ?s :p ?o }") == Graph(iri("g"), SPO)
    assert pattern("GRAPH ?g { ?s :p ?o }") == Graph(var("g"), SPO)


def test_bind_ends_the_basic_graph_pattern() -> None:
    assert pattern("?s :p ?o BIND(?o AS ?z) ?q :q ?r") == Join(Extend(SPO, var("z"), var("o")), QQQ)


def test_values_are_joined_where_they_stand() -> None:
    assert pattern("?s :p ?o VALUES (?s ?o) { (:a 1) (UNDEF 'x') }") == Join(
        SPO, Values((var("s"), var("o")), ((iri("a"), integer(1)), (None, text("x"))))
    )
    assert pattern("VALUES ?s { :a :b }") == Values((var("s"),), ((iri("a"),), (iri("b"),)))
    assert pattern("VALUES () { () () }") == Values((), ((), ()))


def test_a_sub_select_is_a_project() -> None:
    assert pattern("?s :p ?o { SELECT ?q { ?q :q ?r } LIMIT 1 }") == Join(SPO, Slice(Project(QQQ, (var("q"),)), 0, 1))


def test_a_trailing_values_of_a_sub_select_is_inside_its_projection() -> None:
    assert pattern("{ SELECT ?q { ?q :q ?r } VALUES ?r { 1 } }") == Project(
        Join(QQQ, Values((var("r"),), ((integer(1),),))), (var("q"),)
    )


# ---- triples
def test_predicate_and_object_lists_are_written_out() -> None:
    assert pattern("?s :p ?o , ?r ; a :C ; .") == Bgp(
        (triple("?s", "p", "?o"), triple("?s", "p", "?r"), Triple(var("s"), Iri(RDF + "type"), iri("C")))
    )


def test_blank_nodes_are_hidden_variables() -> None:
    assert pattern("_:x :p [] . _:x :q [ :r _:x ]") == Bgp(
        (
            Triple(var("_:x"), iri("p"), var("_:b0")),
            Triple(var("_:b1"), iri("r"), var("_:x")),
            Triple(var("_:x"), iri("q"), var("_:b1")),
        )
    )


def test_fresh_labels_avoid_those_of_the_text() -> None:
    assert pattern("_:b0 :p []") == Bgp((Triple(var("_:b0"), iri("p"), var("_:b1")),))


def test_blank_node_property_lists_stand_alone_as_subjects() -> None:
    assert pattern("[ :p 1 ]") == Bgp((Triple(var("_:b0"), iri("p"), integer(1)),))


def test_collections_are_lists_of_first_and_rest() -> None:
    first, rest = Iri(RDF + "first"), Iri(RDF + "rest")
    cells = (
        Triple(var("_:b0"), first, integer(1)),
        Triple(var("_:b0"), rest, var("_:b1")),
        Triple(var("_:b1"), first, var("x")),
        Triple(var("_:b1"), rest, NIL),
    )
    assert pattern("(1 ?x) :p ()") == Bgp((*cells, Triple(var("_:b0"), iri("p"), NIL)))
    assert pattern("(1 ?x)") == Bgp(cells)


# ---- paths
def path(body: str):
    node = pattern(f"?s {body} ?o")
    assert isinstance(node, Bgp)
    (only,) = node.patterns
    assert isinstance(only, PathTriple), only
    return only.path


P, Q = Link(iri("p")), Link(iri("q"))


def test_inverse_links_and_sequences_are_plain_triples() -> None:
    assert pattern("?s ^:p ?o") == Bgp((triple("?o", "p", "?s"),))
    assert pattern("?s :p/^:q/:r ?o") == Bgp(
        (triple("?s", "p", "?_:p0"), triple("?_:p1", "q", "?_:p0"), triple("?_:p1", "r", "?o"))
    )


def test_an_inverse_sequence_is_walked_backwards() -> None:
    assert pattern("?s ^(:p/:q) ?o") == Bgp((triple("?o", "p", "?_:p0"), triple("?_:p0", "q", "?s")))


def test_a_sequence_leaves_only_its_hard_parts_as_paths() -> None:
    assert pattern("?s :p/:q* ?o") == Bgp(
        (triple("?s", "p", "?_:p0"), PathTriple(var("_:p0"), ZeroOrMore(Q), var("o")))
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (":p|:q", Alternative((P, Q))),
        (":p*", ZeroOrMore(P)),
        (":p+", OneOrMore(P)),
        (":p?", ZeroOrOne(P)),
        ("^:p*", Inverse(ZeroOrMore(P))),
        ("(^:p)*", ZeroOrMore(Inverse(P))),
        (":p/:q|:p", Alternative((Sequence((P, Q)), P))),
        ("(:p/:q)+", OneOrMore(Sequence((P, Q)))),
        ("((:p|:q)/:p)*", ZeroOrMore(Sequence((Alternative((P, Q)), P)))),
        ("!:p", NegatedSet((iri("p"),), None)),
        ("!^:p", NegatedSet(None, (iri("p"),))),
        ("!(:p|^:q|a)", NegatedSet((iri("p"), Iri(RDF + "type")), (iri("q"),))),
        ("!()", NegatedSet((), None)),
    ],
)
def test_paths_keep_their_precedence(written: str, expected: object) -> None:
    if written.startswith("^:p*"):
        assert pattern("?s ^:p* ?o") == Bgp((PathTriple(var("o"), ZeroOrMore(P), var("s")),))
    else:
        assert path(written) == expected


# ---- terms
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("'a'", text("a")),
        ('"a\\"\\n\\\\"', text('a"\n\\')),
        ("'''a'b''c'''", text("a'b''c")),
        ('"""a"b\nc"""', text('a"b\nc')),
        ("''", text("")),
        ("''''''", text("")),
        ("'a'@en-GB", Literal("a", RDF + "langString", "en-gb")),
        ("'1'^^:t", Literal("1", BASE + "t")),
        ("01", Literal("01", XSD + "integer")),
        ("+1", Literal("+1", XSD + "integer")),
        ("-1.50", Literal("-1.50", XSD + "decimal")),
        (".5", Literal(".5", XSD + "decimal")),
        ("1e3", Literal("1e3", XSD + "double")),
        ("1.e3", Literal("1.e3", XSD + "double")),
        ("TRUE", Literal("true", XSD + "boolean")),
        ("false", Literal("false", XSD + "boolean")),
        ("<x>", iri("x")),
        ("</x?y#z>", Iri("http://ex.org/x?y#z")),
        ("<urn:x>", Iri("urn:x")),
        (":a\\,b%20c\\~", iri("a,b%20c~")),
        (":a:b.c", iri("a:b.c")),
        (":", Iri(BASE)),
        ("po", iri("po")),
        ("X-Lab", iri("X-Lab")),
        ("a.b", iri("a.b")),
        ("\\u0061\\U00000062", iri("ab")),
    ],
)
def test_terms(written: str, expected: object) -> None:
    assert pattern(f"?s ?p {written}.") == Bgp((Triple(var("s"), var("p"), expected),))  # type: ignore[arg-type]


def test_base_and_prefixes_may_be_declared_again() -> None:
    statement = parse("BASE <http://a/> PREFIX p: <x/> BASE <b/> PREFIX p: <y/> ASK { p:1 <2> p: }")
    assert isinstance(statement, ContinuousQuery)
    assert statement.algebra == Bgp((Triple(Iri("http://a/b/y/1"), Iri("http://a/b/2"), Iri("http://a/b/y/")),))


def test_without_a_base_relative_iris_stay_as_written() -> None:
    statement = parse("ASK { <s> <p> <o> }")
    assert isinstance(statement, ContinuousQuery)
    assert statement.algebra == Bgp((Triple(Iri("s"), Iri("p"), Iri("o")),))


# ---- expressions
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("?a || ?b && !?c", Call("or", (var("a"), Call("and", (var("b"), Call("not", (var("c"),))))))),
        ("?a || ?b || ?c", Call("or", (var("a"), var("b"), var("c")))),
        ("1-1", Call("+", (integer(1), integer(-1)))),
        ("?a-1*2", Call("+", (var("a"), Call("*", (integer(-1), integer(2)))))),
        ("?a - 1", Call("-", (var("a"), integer(1)))),
        ("1 + 2 * 3", Call("+", (integer(1), Call("*", (integer(2), integer(3)))))),
        ("?a - ?b - ?c", Call("-", (Call("-", (var("a"), var("b"))), var("c")))),
        ("- ?a", Call("neg", (var("a"),))),
        ("?a<?b", Call("<", (var("a"), var("b")))),
        ("?a IN (1, 2)", Call("in", (var("a"), integer(1), integer(2)))),
        ("?a NOT IN ()", Call("notin", (var("a"),))),
        ("isURI(?a)", Call("isiri", (var("a"),))),
        ("now()", Call("now", ())),
        ("coalesce()", Call("coalesce", ())),
        ("IRI('x')", Call("iri", (text("x"),), BASE)),
        ("regex(?a, 'x', 'i')", Call("regex", (var("a"), text("x"), text("i")))),
        (f"<{XSD}integer>(?a)", Call("cast:integer", (var("a"),))),
        ("<urn:x-penstock:fn/evaluationTime>()", Call("evaluation_time", ())),
        ("EXISTS { ?s :p ?o }", Exists(SPO, negated=False)),
        ("NOT EXISTS { ?s :p ?o FILTER(?x) }", Exists(Filter(SPO, var("x")), negated=True)),
    ],
)
def test_expressions(written: str, expected: object) -> None:
    assert expr(written) == expected


# ---- solutions
def test_select_star_shows_the_variables_in_scope_in_the_order_of_the_text() -> None:
    starred = query("SELECT * { ?s ?p _:x GRAPH ?g { ?o :p ?s } MINUS { ?hidden :p 1 } BIND(1 AS ?z) } VALUES ?v { 1 }")
    assert [variable.name for variable in starred.variables] == ["s", "p", "g", "o", "z", "v"]


def test_modifiers_stand_in_the_order_of_the_specification() -> None:
    ordered = query("SELECT DISTINCT ?s (?o + 1 AS ?n) { ?s :p ?o } ORDER BY DESC(?n) ?s LIMIT 3 OFFSET 2")
    extended = Extend(SPO, var("n"), Call("+", (var("o"), integer(1))))
    sorted_ = OrderBy(extended, (OrderKey(var("n"), descending=True), OrderKey(var("s"))))
    assert ordered.algebra == Slice(Distinct(Project(sorted_, (var("s"), var("n")))), 2, 3)
    assert ordered.variables == (var("s"), var("n"))


def test_aggregates_are_lifted_and_computed_once() -> None:
    grouped = query("SELECT ?s (COUNT(?o) AS ?n) { ?s :p ?o } GROUP BY ?s HAVING(COUNT(?o) > 1) ORDER BY COUNT(?o)")
    count = AggregateCall("count", var("o"))
    group = Group(SPO, (var("s"),), ((var("_:a0"), count),), implicit=False)
    having = Filter(group, Call(">", (var("_:a0"), integer(1))))
    extended = Extend(having, var("n"), var("_:a0"))
    assert grouped.algebra == Project(OrderBy(extended, (OrderKey(var("_:a0")),)), (var("s"), var("n")))


def test_an_aggregate_without_group_by_makes_one_implicit_group() -> None:
    counted = query("SELECT (COUNT(DISTINCT *) AS ?n) { ?s :p ?o }")
    group = Group(SPO, (), ((var("_:a0"), AggregateCall("count", None, distinct=True)),), implicit=True)
    assert counted.algebra == Project(Extend(group, var("n"), var("_:a0")), (var("n"),))


def test_group_by_expressions_are_extends_below_the_group() -> None:
    grouped = query("SELECT ?k { ?s :p ?o } GROUP BY (str(?s) AS ?k) strlen(?k)")
    keyed = Extend(SPO, var("k"), Call("str", (var("s"),)))
    hidden = Extend(keyed, var("_:k0"), Call("strlen", (var("k"),)))
    assert grouped.algebra == Project(Group(hidden, (var("k"), var("_:k0")), (), implicit=False), (var("k"),))


def test_in_having_a_variable_that_is_no_key_is_sampled() -> None:
    grouped = query("SELECT ?s { ?s :p ?o } GROUP BY ?s HAVING(?o > 1)")
    group = Group(SPO, (var("s"),), ((var("_:a0"), AggregateCall("sample", var("o"))),), implicit=False)
    assert grouped.algebra == Project(Filter(group, Call(">", (var("_:a0"), integer(1)))), (var("s"),))


def test_group_concat_has_its_separator() -> None:
    grouped = query("SELECT (GROUP_CONCAT(DISTINCT ?o; SEPARATOR=', ') AS ?all) { ?s :p ?o }")
    assert isinstance(grouped.algebra, Project)
    assert isinstance(grouped.algebra.inner, Extend)
    assert isinstance(grouped.algebra.inner.inner, Group)
    assert grouped.algebra.inner.inner.aggregates[0][1] == AggregateCall("group_concat", var("o"), True, ", ")


# ---- forms
def test_construct_has_a_template_with_blank_nodes() -> None:
    made = query("CONSTRUCT { ?s :p _:x . _:x :q [] } WHERE { ?s :p ?o }")
    assert made.form is Form.CONSTRUCT
    assert made.algebra == SPO
    assert made.template == (
        Triple(var("s"), iri("p"), BlankNode("x")),
        Triple(BlankNode("x"), iri("q"), BlankNode("b0")),
    )


def test_construct_where_uses_the_pattern_as_template() -> None:
    made = query("CONSTRUCT WHERE { ?s :p ?o }")
    assert (made.algebra, made.template) == (SPO, SPO.patterns)
    empty = query("CONSTRUCT WHERE {}")
    assert (empty.algebra, empty.template) == (Bgp(()), ())


def test_describe_has_terms_or_all_variables() -> None:
    described = query("DESCRIBE ?s :x { ?s :p ?o }")
    assert (described.form, described.describe) == (Form.DESCRIBE, (var("s"), iri("x")))
    assert query("DESCRIBE * { ?s :p ?o }").describe == (var("s"), var("o"))
    assert query("DESCRIBE :x").algebra == Bgp(())


def test_insert_data_has_quads() -> None:
    update = parse(
        "INSERT DATA { <a> <b> 1 GRAPH <g> { _:x <b> [] } } ; PREFIX p: <http://p/> INSERT DATA { p:s p:p p:o }"
    )
    assert isinstance(update, Update)
    assert tuple(quad for operation in update.operations for quad in operation.quads) == (
        (None, Triple(Iri("a"), Iri("b"), integer(1))),
        (Iri("g"), Triple(BlankNode("x"), Iri("b"), BlankNode("b0"))),
        (None, Triple(Iri("http://p/s"), Iri("http://p/p"), Iri("http://p/o"))),
    )
