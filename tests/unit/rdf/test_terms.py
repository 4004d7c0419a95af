"""Terms between rdflib and the core."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef, Variable
from rdflib.namespace import XSD

from penstock.core._native import Dictionary, LocalTerms
from penstock.errors import DataError
from penstock.rdf.terms import LITERAL, XSD_STRING, decode, encode, from_tuple, to_tuple


@pytest.mark.parametrize(
    "term",
    [
        URIRef("http://example.org/é"),
        URIRef("urn:x"),
        BNode("x1"),
        Literal("text"),
        Literal(""),
        Literal("chat", lang="fr-ca"),
        Literal("01", datatype=XSD.integer, normalize=False),
        Literal("1.0E0", datatype=XSD.double, normalize=False),
        Literal("nonsense", datatype=XSD.integer, normalize=False),
        Literal("x", datatype=URIRef("http://example.org/type")),
    ],
)
def test_a_term_comes_back_as_it_was(term):
    back = from_tuple(to_tuple(term))
    assert back == term
    assert type(back) is type(term)
    assert str(back) == str(term)


@pytest.mark.parametrize(
    "term",
    [
        Variable("x"),
        URIRef("relative"),
        URIRef(""),
        URIRef("http://a b"),
        URIRef("http://<x>"),
        Literal("x", lang="toolongtag"),
        None,
    ],
)
def test_what_is_no_term_of_a_graph_is_refused(term):
    with pytest.raises(DataError):
        to_tuple(term)


def test_language_tags_are_equal_without_regard_to_case():
    dictionary = Dictionary()
    lower, upper, other = encode(
        dictionary, [Literal("a", lang="en"), Literal("a", lang="EN"), Literal("a", lang="de")]
    )
    assert lower == upper != other
    assert [t.language for t in decode(LocalTerms(dictionary), np.array([lower, other]))] == ["en", "de"]


def test_blank_nodes_of_the_dictionary_are_themselves_and_others_are_fresh():
    dictionary = Dictionary()
    first = encode(dictionary, [BNode("q"), BNode("q")])
    assert first[0] == first[1]
    assert encode(dictionary, [BNode("q")])[0] != first[0]
    (node,) = decode(LocalTerms(dictionary), first[:1])
    assert encode(dictionary, [node])[0] == first[0]


def test_unbound_decodes_to_none():
    assert decode(LocalTerms(Dictionary()), np.zeros(2, dtype=np.uint64)) == [None, None]


XSD_TYPES = [
    str(XSD[name])
    for name in ("integer", "byte", "decimal", "double", "float", "boolean", "dateTime", "date", "string", "time")
]
NUMBERS_AND_DATES = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.decimals().map(str),
    st.datetimes(timezones=st.none() | st.timezones()).map(lambda d: d.isoformat()),
    st.dates().map(lambda d: d.isoformat()),
    st.from_regex(r"[+-]?[0-9]{0,20}(\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,4})?)?(Z|[+-][0-9]{2}:[0-9]{2})?",
        fullmatch=True,
    ),
)


@given(st.lists(st.tuples(NUMBERS_AND_DATES | st.text(max_size=12), st.sampled_from(XSD_TYPES)), min_size=1))
def test_every_spelling_comes_back_exactly(spellings):
    dictionary = Dictionary()
    tuples = [(3, lexical, datatype, "") for lexical, datatype in spellings]
    ids = dictionary.intern_many(tuples)
    assert LocalTerms(dictionary).decode(ids) == tuples
    assert [dictionary.intern(*t) for t in tuples] == ids.tolist()
    assert len(set(ids.tolist())) == len(set(tuples))


def test_a_short_term_made_again_is_the_same_object_and_a_long_one_is_not_cached() -> None:
    short, long = ((LITERAL, text, XSD_STRING, "") for text in ("short", "long" * 1000))
    assert from_tuple(short) is from_tuple(short)
    assert from_tuple(long) is not from_tuple(long)
    assert from_tuple(long) == from_tuple(long)
