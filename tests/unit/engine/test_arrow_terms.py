"""Columns of terms as Arrow arrays, compared with the decoded terms."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.engine.answers.arrow_terms import KINDS, lexical_column, term_arrays, term_column
from penstock.errors import DataError
from penstock.rdf.terms import IRI, LITERAL, RDF_LANG_STRING

XSD = "http://www.w3.org/2001/XMLSchema#"


def test_columns_equal_the_decoded_terms():
    rng = random.Random(7)
    dictionary = native.Dictionary()
    texts = [f"{'x' * rng.randrange(90)}{i}é" for i in range(500)]
    terms = [(IRI, f"http://example.org/{text}", "", "") for text in texts]
    terms += [(LITERAL, text, XSD + "string", "") for text in texts]
    terms += [(LITERAL, text, RDF_LANG_STRING, rng.choice(["en", "de-ch"])) for text in texts]
    terms += [(LITERAL, str(i), XSD + rng.choice(["integer", "decimal", "double", "own"]), "") for i in range(500)]
    ids = np.concatenate([dictionary.intern_many(terms), np.zeros(200, np.uint64)])
    decoder = native.LocalTerms(dictionary)
    computed = [decoder.intern(LITERAL, f"computed {text}", XSD + "string") for text in texts]
    ids = np.concatenate([ids, np.array(computed, np.uint64)])
    rng.shuffle(order := list(range(len(ids))))
    for column in (ids[order], ids[:0], ids[-1:], np.zeros(3, np.uint64)):
        expected = [
            None
            if term is None
            else {"type": KINDS[term[0] - 1], "value": term[1], "datatype": term[2] or None, "lang": term[3] or None}
            for term in decoder.decode(column)
        ]
        assert term_column(column, decoder).to_pylist() == expected
        assert [value or "" for value in lexical_column(column, decoder).to_pylist()] == [
            "" if term is None else term["value"] for term in expected
        ]


def test_texts_of_an_earlier_column_are_those_of_the_dictionary():
    rng = np.random.default_rng(3)
    dictionary = native.Dictionary()
    terms = [(IRI, f"http://example.org/{i}", "", "") for i in range(40)]
    terms += [(LITERAL, f"text {i}", XSD + "string", "") for i in range(10)]
    known = np.concatenate([dictionary.intern_many(terms), np.zeros(1, np.uint64)])
    decoder = native.LocalTerms(dictionary)
    computed = decoder.intern(IRI, "http://example.org/computed", "")
    known = np.append(known, np.uint64(computed))
    members, ids, earlier = np.empty(0, np.uint64), known[:0], None
    for _ in range(200):
        stays = rng.random(len(ids)) < rng.choice([0, 0.5, 0.95, 1])
        more = rng.integers(0, 300)
        members = np.concatenate([members[stays], rng.integers(0, rng.choice([1, 5, 200]), more).astype(np.uint64)])
        ids = np.concatenate([ids[stays], rng.choice(known, more)])
        order = np.argsort(members, kind="stable" if rng.random() < 0.8 else "quicksort")
        members, ids = members[order], ids[order]
        (found,), (expected,) = term_arrays(ids, decoder, members, earlier), term_arrays(ids, decoder)
        assert found[4] == expected[4]
        for ours, theirs in zip(
            (found[0], *found[1], *found[2:4]), (expected[0], *expected[1], *expected[2:4]), strict=True
        ):
            assert np.array_equal(ours, theirs)
        earlier = members, ids, found[1]


def test_an_earlier_column_must_have_a_member_and_a_text_for_each_id():
    dictionary = native.Dictionary()
    ids = dictionary.intern_many([(IRI, "http://example.org/1", "", "")])
    decoder = native.LocalTerms(dictionary)
    ((_, lexicals, *_),) = term_arrays(ids, decoder)
    for earlier in ((ids[:0], ids, lexicals), (ids, ids[:0], lexicals)):
        with pytest.raises(DataError):
            term_arrays(ids, decoder, ids, earlier)
    with pytest.raises(DataError):
        term_arrays(ids, decoder, ids[:0], (ids, ids, lexicals))
