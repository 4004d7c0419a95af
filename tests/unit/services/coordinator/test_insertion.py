"""What an insertion is read from."""

from __future__ import annotations

import pytest

from penstock.errors import DataError, LimitError, QueryError
from penstock.services.coordinator.insertion import Insertion
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.updates import effects
from support.active_coordinator import ActiveCoordinator


@pytest.fixture
def terms() -> DictionaryService:
    made = ActiveCoordinator()
    return DictionaryService(made.log, made.topics)


def test_a_document_has_the_ids_of_the_cluster_and_names_its_graphs(terms):
    document = b"<http://x/s> <http://x/p> <http://x/o> .\n<http://x/s> <http://x/p> <http://x/o> <http://x/g> ."
    made = Insertion.of_document(terms, document, "nq", graph="http://x/d")
    assert (len(made), set(made.graphs)) == (2, {"http://x/d", "http://x/g"})
    assert {term[1] for term in terms.decode(made.columns[0])} == {"http://x/s"}
    with pytest.raises(DataError):
        Insertion.of_document(terms, b"no triple", "nt")


def test_an_update_is_insert_data_and_nothing_else(terms):
    assert len(Insertion.of_update(terms, "INSERT DATA { <http://x/s> <http://x/p> 1, 2 }")) == 2
    continuous = "REGISTER QUERY q AS SELECT ?s FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }"
    for text, message in (
        (continuous, "a query is not an update"),
        ("INSERT { ?s <http://x/p> 1 } WHERE { ?s ?p ?o }", "INSERT … WHERE needs an evaluation"),
        ("ADD <http://x/g> TO <http://x/h>", "ADD needs an evaluation: use INSERT DATA"),
        ("DELETE DATA { <http://x/s> <http://x/p> 1 }", "DELETE DATA is not supported in a cluster yet"),
    ):
        with pytest.raises(QueryError, match=message):
            Insertion.of_update(terms, text)


def test_an_insertion_has_a_limit(terms, monkeypatch):
    monkeypatch.setattr(effects, "MAX_INSERTION", 1)
    with pytest.raises(LimitError, match="2 triples in one insertion"):
        Insertion.of_update(terms, "INSERT DATA { <http://x/s> <http://x/p> 1, 2 }")
