from __future__ import annotations

import numpy as np
import pytest

from penstock.cluster.dictionary import MAX_TERMS, DictionaryService
from penstock.cluster.terms import TermTable
from penstock.cluster.topics import ClusterTopics
from penstock.errors import DataError, LimitError
from penstock.log import FencedError, MemoryLog
from penstock.log.topics import TopicNames
from penstock.store import _native as native

TOPICS = ClusterTopics(TopicNames())
TERMS = [(1, f"urn:x:{i}", "", "") for i in range(50)] + [(3, "a rather long literal", "urn:x:type", "")]


@pytest.fixture
def log():
    made = MemoryLog()
    made.create(TOPICS.all())
    return made


def test_ids_are_the_same_after_a_restart(log):
    first = DictionaryService(log, TOPICS)
    ids = np.concatenate([first.encode(TERMS[:20]), first.encode(TERMS[10:])])
    log.compact(TOPICS.names.dictionary)
    second = DictionaryService(log, TOPICS)
    assert np.array_equal(np.concatenate([second.encode(TERMS[:20]), second.encode(TERMS[10:])]), ids)
    assert second.decode(ids[:20]) == TERMS[:20]


def test_an_instance_that_was_replaced_gives_out_no_ids(log):
    old = DictionaryService(log, TOPICS)
    DictionaryService(log, TOPICS)
    with pytest.raises(FencedError):
        old.encode(TERMS)


def test_blank_nodes_are_never_given_out_twice(log):
    blank = [(2, "b", "", "")]
    first = DictionaryService(log, TOPICS)
    seen = {int(first.encode(blank)[0]) for _ in range(3)}
    second = DictionaryService(log, TOPICS)
    assert int(second.encode(blank)[0]) not in seen


def test_what_is_no_term_or_too_much_is_refused(log):
    service = DictionaryService(log, TOPICS)
    with pytest.raises(DataError):
        service.encode([(1, "not absolute", "", "")])
    with pytest.raises(LimitError):
        service.encode([(1, "urn:x", "", "")] * (MAX_TERMS + 1))
    with pytest.raises(DataError):
        service.decode(np.array([12345], np.uint64))


def test_a_table_turns_the_clusters_ids_into_its_own_and_asks_once(log):
    service = DictionaryService(log, TOPICS)
    ids = service.encode([*TERMS, (3, "7", "http://www.w3.org/2001/XMLSchema#integer", "")])
    asked = []

    class Counting:
        encode = service.encode

        def decode(self, wanted):
            asked.append(len(wanted))
            return service.decode(wanted)

    own = native.Dictionary()
    own.intern(1, "urn:x:another")
    table = TermTable(own, Counting())
    local = table.local(np.concatenate([ids, ids[::-1]]))
    assert native.LocalTerms(own).decode(local[: len(TERMS)]) == TERMS
    assert local[len(TERMS)] == ids[len(TERMS)]  # inline
    table.local(ids)
    assert asked == [len(TERMS)]
    saved = table.save().copy()
    again = TermTable(own, Counting())
    again.restore(saved)
    assert np.array_equal(again.local(ids), table.local(ids))
    assert asked == [len(TERMS)]
