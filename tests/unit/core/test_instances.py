"""Instances of the templates of an update."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.rdf.terms import BLANK, IRI, LITERAL


@pytest.fixture
def dictionary() -> native.Dictionary:
    return native.Dictionary()


def rows(columns: tuple[np.ndarray, ...]) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_each_quad_has_an_instance_for_each_solution(dictionary: native.Dictionary) -> None:
    a, b, p, g = (dictionary.intern(IRI, f"urn:{name}") for name in "abpg")
    column = np.array([a, b], np.uint64)
    removed, added = native.instances((2, 1, 2, 0), (2, 1, 2, 0, 3, 1, 2, 5), [p, a, g], [column], 2, 0)
    assert rows(removed) == [(a, p, a, 0), (b, p, b, 0)]
    assert rows(added) == [(a, p, a, 0), (b, p, b, 0), (a, p, a, g), (a, p, b, g)]


def test_instances_that_are_not_valid_rdf_are_left_out(dictionary: native.Dictionary) -> None:
    iri, blank = dictionary.intern(IRI, "urn:a"), dictionary.intern_many([(BLANK, "b", "", "")])[0]
    literal, long = dictionary.intern(LITERAL, "x"), dictionary.intern(LITERAL, "a literal with a long text")
    column = np.array([iri, blank, literal, long, 0], np.uint64)

    def at(place: int) -> list[int]:
        places = [1, 1, 1, 1]
        places[place] = 2
        found, none = native.instances(places, (), [iri], [column], 5, 0)
        assert rows(none) == []
        return found[place].tolist()

    assert at(0) == [iri, blank]
    assert at(1) == [iri]
    assert at(2) == [iri, blank, literal, long]
    assert at(3) == [iri]


def test_the_name_of_the_stored_graph_denotes_the_default_graph(dictionary: native.Dictionary) -> None:
    a, stored = dictionary.intern(IRI, "urn:a"), dictionary.intern(IRI, "urn:x-penstock:stored")
    column = np.array([stored, a], np.uint64)
    removed, _ = native.instances((1, 1, 1, 2), (), [a], [column], 2, stored)
    assert removed[3].tolist() == [0, a]


def test_a_place_without_a_term_is_an_error() -> None:
    for place in (1, 2):
        with pytest.raises(IndexError):
            native.instances((place, place, place, 0), (), [], [], 1, 0)
    with pytest.raises(ValueError, match="one id per solution"):
        native.instances((), (), [], [np.zeros(2, np.uint64)], 1, 0)
