"""Columns of terms as Arrow arrays, compared with the decoded terms."""

from __future__ import annotations

import random

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.arrow_terms import KINDS, lexical_column, term_column
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
