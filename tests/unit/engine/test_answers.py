"""Answers decode when looked at, and keep spellings."""

from __future__ import annotations

import numpy as np
import rdflib

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions, Triples
from penstock.rdf.terms import from_tuple, to_tuple

XSD_INTEGER = rdflib.XSD.integer
TERMS = [
    rdflib.URIRef("urn:a"),
    rdflib.Literal("054", datatype=XSD_INTEGER, normalize=False),
    rdflib.Literal("chat", lang="fr"),
    rdflib.Literal("plain"),
    rdflib.Literal("not a number", datatype=XSD_INTEGER),
]


def solutions() -> Solutions:
    dictionary = native.Dictionary()
    ids = dictionary.intern_many([to_tuple(term) for term in TERMS])
    unbound = np.zeros(len(ids), np.uint64)
    unbound[0] = ids[1]
    return Solutions(("x", "y"), [ids, unbound], len(ids), native.LocalTerms(dictionary))


def test_iteration_gives_bound_variables_only():
    rows = list(solutions())
    assert rows[0] == {"x": TERMS[0], "y": TERMS[1]}
    assert [row["x"] for row in rows] == TERMS
    assert all(set(row) == {"x"} for row in rows[1:])


def test_literals_keep_their_spelling():
    assert [str(row["x"]) for row in solutions()][1] == "054"


def test_answers_can_be_read_many_times():
    answer = solutions()
    assert list(answer) == list(answer)
    assert len(answer) == len(list(answer)) == 5


def test_ids_are_columns_by_variable():
    ids = solutions().ids
    assert list(ids) == ["x", "y"]
    assert ids["x"].dtype == np.uint64
    assert ids["y"].tolist()[1:] == [0] * 4


def test_arrow_has_a_struct_column_a_variable():
    table = solutions().to_arrow()
    assert table.column_names == ["x", "y"]
    assert table["x"][2].as_py() == {
        "type": "literal",
        "value": "chat",
        "datatype": "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString",
        "lang": "fr",
    }
    assert table["y"][1].as_py() is None


def test_an_answer_without_columns_still_has_rows():
    answer = Solutions((), [], 3, native.LocalTerms(native.Dictionary()))
    assert list(answer) == [{}, {}, {}]
    assert answer.to_csv() == "\r\n\r\n\r\n\r\n"


def test_a_computed_blank_node_is_one_node_in_all_columns():
    dictionary = native.Dictionary()
    local = native.LocalTerms(dictionary)
    computed = local.intern(3, "a long text that no id can hold inline")
    known = dictionary.intern(1, "urn:p")
    column = np.array([computed], np.uint64)
    triples = Triples([np.array([known], np.uint64)] * 2 + [column], 1, local)
    assert [t[2] for t in triples.rdf_rows()] == [rdflib.Literal("a long text that no id can hold inline")]
    assert triples.published[2].tolist() != column.tolist()
    assert local.decode(triples.published[2])[0] is not None
    assert len(triples.graph()) == 1
    assert triples.to_ntriples().startswith("<urn:p> <urn:p> ")


def test_terms_survive_the_way_there_and_back():
    for term in TERMS:
        back = from_tuple(to_tuple(term))
        assert back == term
        assert str(back) == str(term)
