"""What an insertion is read from."""

from __future__ import annotations

import pytest

from penstock.errors import DataError, LimitError, QueryError
from penstock.rdf.terms import IRI
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


def test_an_update_is_data_and_nothing_else(terms):
    assert len(Insertion.of_update(terms, "INSERT DATA { <http://x/s> <http://x/p> 1, 2 }")) == 2
    continuous = "REGISTER QUERY q AS SELECT ?s FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }"
    for text, message in (
        (continuous, "a query is not an update"),
        ("INSERT { ?s <http://x/p> 1 } WHERE { ?s ?p ?o }", "INSERT … WHERE needs an evaluation"),
        ("ADD <http://x/g> TO <http://x/h>", "ADD needs an evaluation: use INSERT DATA or DELETE DATA"),
        ("DELETE WHERE { ?s <http://x/p> 1 }", "DELETE … WHERE needs an evaluation"),
    ):
        with pytest.raises(QueryError, match=message):
            Insertion.of_update(terms, text)


def test_data_are_removed_whose_terms_the_cluster_knows(terms):
    Insertion.of_update(terms, "INSERT DATA { <http://x/s> <http://x/p> <http://x/o> }")
    removal = "DELETE DATA { <http://x/s> <http://x/p> <http://x/o>, <http://x/new>, 'a literal which is new to it' }"
    made = Insertion.of_update(terms, removal)
    assert (len(made), len(made.columns[0]), len(made.removed[0])) == (1, 0, 1)
    assert [term[1] for term in terms.decode(made.removed[2])] == ["http://x/o"]
    assert not terms.find([(IRI, "http://x/new", "", "")]).any(), "a removal numbers no terms"
    both = (
        f"INSERT DATA {{ <http://x/s> <http://x/p> 1, 2 }} ; {removal} ; DELETE DATA {{ <http://x/s> <http://x/p> 2 }}"
    )
    made = Insertion.of_update(terms, both)
    assert (len(made.columns[0]), len(made.removed[0])) == (1, 2), "what is removed after its insertion is not added"


def test_an_insertion_has_a_limit(terms, monkeypatch):
    monkeypatch.setattr(effects, "MAX_INSERTION", 1)
    with pytest.raises(LimitError, match="2 triples in one insertion"):
        Insertion.of_update(terms, "INSERT DATA { <http://x/s> <http://x/p> 1, 2 }")
