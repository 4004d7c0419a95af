"""Cycles through native objects that hold Python objects are found by the garbage collector."""

import gc
import weakref

import pytest

from penstock.core import _native


class Holder:
    """Holds the native object that holds it."""

    native: object

    def decode(self, ids):
        return []

    def find(self, terms):
        return []

    def run(self, fork, parts, seconds, memory):
        return parts


def a_dictionary_of_its_source(holder: Holder) -> _native.Dictionary:
    dictionary = _native.Dictionary()
    dictionary.attach(holder)
    return dictionary


def a_forker_of_its_function(holder: Holder) -> _native.Forker:
    return _native.Forker([0], holder.run)


@pytest.mark.parametrize("make", [a_dictionary_of_its_source, a_forker_of_its_function])
def test_a_cycle_through_a_native_object_is_collected(make):
    holder = Holder()
    holder.native = make(holder)
    gone = weakref.ref(holder)
    gc.collect()
    assert gone() is holder
    del holder
    gc.collect()
    assert gone() is None
