"""Documents of all formats to columns of ids."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core._native import BlankScope, Dictionary, LocalTerms, parse_nquads
from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.rdf.parsing import parse

XSD = "http://www.w3.org/2001/XMLSchema#"


def terms(dictionary, ids):
    return LocalTerms(dictionary).decode(ids)


def lexical(dictionary, ids):
    return [t and t[1] for t in terms(dictionary, ids)]


SAME = {
    "nt": '<http://e/s> <http://e/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "nquads": '<http://e/s> <http://e/p> "01"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    "turtle": "<s> <p> 01 .",
    "trig": "{ <s> <p> 01 }",
    "xml": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<rdf:Description rdf:about="s"><e:p rdf:datatype="http://www.w3.org/2001/XMLSchema#integer">01</e:p></rdf:Description></rdf:RDF>',
    "json-ld": '{"@id": "s", "http://e/p": {"@value": "01", "@type": "http://www.w3.org/2001/XMLSchema#integer"}}',
}


@pytest.mark.parametrize("name", SAME)
def test_every_format_gives_the_same_triple(name):
    dictionary = Dictionary()
    quads = parse(dictionary, SAME[name], name, base="http://e/")
    assert len(quads) == 1
    assert lexical(dictionary, quads.subjects) == ["http://e/s"]
    assert lexical(dictionary, quads.predicates) == ["http://e/p"]
    assert terms(dictionary, quads.objects) == [(3, "01", XSD + "integer", "")]
    assert quads.graphs.tolist() == [0]


def test_turtle_keeps_the_spelling_of_literals():
    dictionary = Dictionary()
    text = f'<http://e/s> <http://e/p> 01, 1.0, 1.50, 1e0, +1, "1.0"^^<{XSD}double>, "01"^^<{XSD}integer>, true, "1"^^<{XSD}boolean> .'
    quads = parse(dictionary, text, "turtle")
    assert [(t[1], t[2].removeprefix(XSD)) for t in terms(dictionary, quads.objects)] == [
        ("01", "integer"),
        ("1.0", "decimal"),
        ("1.50", "decimal"),
        ("1e0", "double"),
        ("+1", "integer"),
        ("1.0", "double"),
        ("01", "integer"),
        ("true", "boolean"),
        ("1", "boolean"),
    ]


@pytest.mark.parametrize("name", ["nt", "turtle", "trig"])
def test_blank_nodes_belong_to_their_document_even_when_labelled(name):
    dictionary = Dictionary()
    text = (
        "_:a <http://e/p> _:b . _:a <http://e/q> _:a ."
        if name != "nt"
        else "_:a <http://e/p> _:b .\n_:a <http://e/q> _:a ."
    )
    first, second = (parse(dictionary, text, name) for _ in range(2))
    assert first.subjects[0] == first.subjects[1] == first.objects[1]
    assert first.subjects[0] != first.objects[0]
    assert not set(first.subjects.tolist()) & set(second.subjects.tolist())


def test_graphs_are_parsed():
    dictionary = Dictionary()
    for name, text in {
        "nquads": "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .",
        "trig": "<http://e/g> { <http://e/s> <http://e/p> <http://e/o> }",
        "json-ld": '{"@id": "http://e/g", "@graph": [{"@id": "http://e/s", "http://e/p": {"@id": "http://e/o"}}]}',
    }.items():
        assert lexical(dictionary, parse(dictionary, text, name).graphs) == ["http://e/g"]


def test_a_graph_in_n_triples_is_refused():
    with pytest.raises(DataError, match="line 1, column 40"):
        parse(Dictionary(), "<http://e/s> <http://e/p> <http://e/o> <http://e/g> .", "nt")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("nt", "\n<http://e/s> nonsense", "line 2, column 14: expected a predicate"),
        ("turtle", "<http://e/s> <http://e/p>\n <http://e/o>,, <http://e/x> .", "line 2, column 15"),
        ("turtle", "<s> <p> <o> .", "line 1, column"),
        ("turtle", b"<http://e/s> <http://e/p> '\xff' .", "line 1"),
        ("trig", "<http://e/g> {", "line 1"),
        ("xml", "<rdf:RDF", "."),
        ("xml", "<a/>", "."),
        ("json-ld", "{", "."),
        ("json-ld", '{"@context": "http://elsewhere.example/"}', "."),
    ],
)
def test_bad_documents_raise_data_errors_with_their_place(name, text, message):
    with pytest.raises(DataError, match=message):
        parse(Dictionary(), text, name)


def test_a_bad_base_or_format_is_a_data_error():
    with pytest.raises(DataError, match="base"):
        parse(Dictionary(), "<s> <p> <o> .", "turtle", base="no base")
    with pytest.raises(DataError, match="unknown RDF format 'rdfa'"):
        parse(Dictionary(), "", "rdfa")


def test_text_with_surrogates_is_refused():
    with pytest.raises(DataError, match="UTF-8"):
        parse(Dictionary(), '<http://e/s> <http://e/p> "\ud800 long enough" .')


@pytest.mark.parametrize("name", [f.value for f in Format])
def test_empty_documents_have_no_triples(name):
    empty = {"xml": '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>', "json-ld": "{}"}.get(name, "")
    assert len(parse(Dictionary(), empty, name)) == 0


def test_long_turtle_documents_are_read_in_parts_with_one_scope():
    dictionary = Dictionary()
    text = "".join(f"_:n{i} <http://e/next> _:n{i + 1} .\n" for i in range(40_000))
    quads = parse(dictionary, text, "turtle")
    assert len(quads) == 40_000
    assert (quads.objects[:-1] == quads.subjects[1:]).all()


def test_permanent_terms_survive_a_sweep():
    dictionary = Dictionary()
    parse(dictionary, "<http://e/s> <http://e/p> <http://e/o> .", keep=True)
    parse(dictionary, "<http://e/s> <http://e/p> <http://e/gone> .")
    assert dictionary.sweep(100) == 1
    assert dictionary.size() == 3


def test_a_scope_goes_on_over_several_calls():
    dictionary = Dictionary()
    for scope in ({}, BlankScope()):
        first = parse_nquads(dictionary, b"_:a <http://e/p> _:b .", scope=scope)
        second = parse_nquads(dictionary, b"_:b <http://e/p> _:c .", scope=scope)
        assert first.objects[0] == second.subjects[0]
        assert len(scope) == 3


def test_bad_lines_are_collected_with_timestamps():
    dictionary = Dictionary()
    parsed = parse_nquads(
        dictionary,
        b"5 <http://e/s> <http://e/p> 1 .\n7 <http://e/s> <http://e/p> _:x .\n",
        timestamps=True,
        strict=False,
    )
    assert parsed.timestamps.tolist() == [7]
    ((line, content, reason),) = parsed.bad
    assert (line, content) == (1, b"5 <http://e/s> <http://e/p> 1 .")
    assert reason.startswith("column 29: expected an object")


@given(st.binary(max_size=200) | st.text(alphabet='<>"_:@^\\.\n# aenu0éhttp/', max_size=200).map(str.encode))
def test_no_bytes_crash_the_reader(data):
    parsed = parse_nquads(Dictionary(), data, strict=False)
    assert len(parsed.subjects) + parsed.bad_count <= parsed.lines
