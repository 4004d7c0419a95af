"""Members of a cluster's query set as records: keys and values of rows, tombstones, faults."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from rdflib import XSD, Literal, URIRef

from penstock import DataError
from penstock.client.cluster_sets import ClusterQuerySet

TOPIC = "penstock.parameters.near"


class Written:
    """A set with the parameters `user` and `limit`, and what it has written."""

    def __init__(self, key: tuple[str, ...] = ()) -> None:
        self.records: list[Any] = []
        given: tuple[Any, ...] = ("near", 1, "text", None, None, None, None)
        self.set = ClusterQuerySet(
            *given, topic=TOPIC, parameters=("user", "limit"), key=key, append=self.records.extend
        )

    def found(self) -> list[tuple[str, Any]]:
        return [(r.key.decode(), None if r.value is None else json.loads(r.value)) for r in self.records]


def test_rows_become_records():
    written = Written(("user",))
    assert written.set.add([{"user": "urn:a", "limit": 5}, {"user": "urn:b", "limit": 7}]) == 2
    assert written.set.remove(["urn:a"]) == 1
    assert written.found() == [
        ("urn:a", {"user": "urn:a", "limit": 5}),
        ("urn:b", {"user": "urn:b", "limit": 7}),
        ("urn:a", None),
    ]


def test_terms_and_keys_of_several_columns():
    written = Written()
    rows = [(URIRef("urn:a"), Literal("1.5", datatype=XSD.decimal)), (Literal("a", lang="fr"), "text")]
    assert written.set.add(rows) == 2
    assert written.found() == [
        (
            '["urn:a", "1.5"]',
            {
                "user": {"type": "uri", "value": "urn:a"},
                "limit": {"type": "literal", "value": "1.5", "datatype": str(XSD.decimal)},
            },
        ),
        ('["a", "text"]', {"user": {"type": "literal", "value": "a", "xml:lang": "fr"}, "limit": "text"}),
    ]


def test_arrow_columns_and_keys_that_are_no_parameters():
    written = Written(("id",))
    assert written.set.columns == ("user", "limit", "id")
    assert written.set.add(pa.table({"user": ["urn:a"], "limit": [True], "id": [7]})) == 1
    assert written.found() == [
        ("7", {"user": "urn:a", "limit": {"type": "literal", "value": "true", "datatype": str(XSD.boolean)}})
    ]


@pytest.mark.parametrize("rows", [[("urn:a", None)], [{"user": "urn:a"}], pa.table({"user": ["urn:a"]})])
def test_missing_values_are_errors(rows):
    written = Written()
    with pytest.raises(DataError, match="limit"):
        written.set.add(rows)
    assert written.records == []
