"""Transient terms outside of the dictionary service: requests of adaptors, and caches of query engines (ADR 50)."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.errors import DataError
from penstock.rdf.terms import is_private
from penstock.term_ids.outgoing_terms import OutgoingTerms
from penstock.term_ids.reencoding import to_cluster


class Service:
    """Gives each term the next id. Odd ids are removable until somebody requests their terms otherwise."""

    def __init__(self) -> None:
        self.ids: dict[tuple, int] = {}
        self.confirmed: set[int] = set()
        self.requests: list[tuple[int, list[str]]] = []

    def encode(self, terms):
        self.requests.append((0, [term[1] for term in terms]))
        given = [self.ids.setdefault(term, len(self.ids) + 1) for term in terms]
        self.confirmed.update(given)
        return np.array(given, np.uint64)

    def encode_transient(self, terms, generation):
        self.requests.append((generation, [term[1] for term in terms]))
        return np.array([self.ids.setdefault(term, len(self.ids) + 1) for term in terms], np.uint64)

    def find(self, terms):
        found = [self.ids.get(term, 0) for term in terms]
        self.confirmed.update(found)
        return np.array(found, np.uint64)

    def decode_marked(self, ids):
        names = {id_: term for term, id_ in self.ids.items()}
        marks = [id_ % 2 and id_ not in self.confirmed for id_ in ids.tolist()]
        return [names[id_] for id_ in ids.tolist()], np.array(marks, np.uint8)


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def outgoing(service) -> OutgoingTerms:
    return OutgoingTerms(service, transient=service)


def local(terms: OutgoingTerms, *names: str) -> np.ndarray:
    return np.array([terms.dictionary.intern(1, name) for name in names], np.uint64)


def test_transient_terms_are_requested_once_in_a_generation(service, outgoing):
    ids = local(outgoing, "urn:a", "urn:p", "urn:a")
    passing = np.array([True, False, True])
    outgoing.begin_generation(1)
    first = outgoing.cluster_ids(ids, passing)
    assert outgoing.cluster_ids(ids, passing).tolist() == first.tolist()
    assert service.requests == [(1, ["urn:a"]), (0, ["urn:p"])]
    outgoing.begin_generation(2)
    outgoing.cluster_ids(ids, passing)
    outgoing.begin_generation(1)
    outgoing.cluster_ids(ids, passing)
    assert service.requests[2:] == [(2, ["urn:a"]), (0, [])] or service.requests[2:] == [(2, ["urn:a"])]


def test_a_term_that_also_occurs_as_a_permanent_one_is_permanent(service, outgoing):
    outgoing.begin_generation(1)
    ids = local(outgoing, "urn:a", "urn:b")
    outgoing.cluster_ids(ids, np.array([True, True]))
    outgoing.cluster_ids(ids, np.array([True, False]))
    outgoing.begin_generation(2)
    outgoing.cluster_ids(np.concatenate([ids, ids]), np.array([True, True, False, False]))
    assert [request for request in service.requests if request[1]] == [
        (1, ["urn:a", "urn:b"]),
        (0, ["urn:b"]),
        (0, ["urn:a"]),
    ]


def test_without_a_mask_all_terms_are_permanent(service, outgoing):
    outgoing.begin_generation(1)
    ids = local(outgoing, "urn:a")
    outgoing.cluster_ids(ids, np.array([True]))
    outgoing.cluster_ids(ids)
    assert service.requests[-1] == (0, ["urn:a"])


@pytest.fixture
def cache(service) -> native.Dictionary:
    made = native.Dictionary()
    made.attach(service)
    service.encode_transient([(1, f"urn:{i}", "", "") for i in range(1, 9)], 1)
    return made


def test_the_text_of_a_removable_term_does_not_lead_to_its_id(cache, service):
    cache.require(np.array([1, 2], np.uint64))
    assert cache.removable(np.array([1, 2, 3], np.uint64)).tolist() == [1, 0, 1]
    assert (cache.find(1, "urn:1"), cache.find(1, "urn:2")) == (0, 2)
    terms = native.LocalTerms(cache)
    assert terms.decode(np.array([1], np.uint64)) == [(1, "urn:1", "", "")]
    private = cache.intern(1, "urn:1")
    assert is_private(private)
    assert cache.settle(np.array([private], np.uint64)).tolist() == [1]  # the service has confirmed it
    assert cache.find(1, "urn:1") == 1
    assert cache.removable(np.array([1], np.uint64)).tolist() == [0]
    assert 1 in service.confirmed


def test_a_removable_term_may_be_swept_and_fetched_again(cache):
    ids = np.array([1, 2, 3], np.uint64)
    cache.require(ids)
    cache.set_tick(5)
    assert cache.sweep(5) == 3
    assert cache.size() == 0
    cache.require(ids)
    cache.adopt(ids[:1], [(1, "urn:1", "", "")])
    assert cache.find(1, "urn:1") == 1


def test_dropped_entries_are_gone_for_sweeps_too(cache):
    ids = np.array([1, 2, 3], np.uint64)
    cache.require(ids)
    cache.drop(ids[:2])
    assert cache.size() == 1
    assert cache.find(1, "urn:2") == 0
    cache.set_tick(5)
    assert cache.sweep(5) == 1


def test_an_id_of_another_term_is_refused(cache):
    cache.require(np.array([1], np.uint64))
    with pytest.raises(DataError):
        cache.adopt(np.array([1], np.uint64), [(1, "urn:2", "", "")])


def test_terms_of_derived_streams_become_permanent(cache, service):
    columns = [np.array([1, 2], np.uint64), np.array([3, 0], np.uint64)]
    assert [column.tolist() for column in to_cluster(cache, columns, service, transient=True)] == [[1, 2], [3, 0]]
    assert service.confirmed >= {1, 3}
    assert [column.tolist() for column in to_cluster(cache, columns, service)] == [[1, 2], [3, 0]]
