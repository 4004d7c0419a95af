"""Events of the shape of Wikidata's mutation stream become RDF Patches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock import DataError
from penstock.rdf.entity_mutations import MutationDecoder, decode_difference

TIME = 1_772_438_400_500


def event(operation: str = "diff", entity: str = "Q1", **parts: Any) -> bytes:
    made = {"entity_id": entity, "event_time": "2026-03-02T08:00:00.500Z", "operation": operation}
    made |= {
        f"rdf_{name}_data": {"data": data, "mime_type": "text/turtle"} if isinstance(data, str) else data
        for name, data in parts.items()
    }
    return json.dumps(made).encode()


def rows(decoder: MutationDecoder, *arguments: Any, **parts: Any) -> list[str]:
    return decoder.decode(event(*arguments, **parts)).patch.decode().splitlines()


def test_a_difference_removes_and_then_adds() -> None:
    turtle = '@prefix e: <urn:> . e:a e:p e:b ; e:q "x"@en .'
    mutation = MutationDecoder().decode(
        event(added=turtle, deleted="<urn:a> <urn:p> 1 .", linked_shared="<urn:v> <urn:p> 2 .")
    )
    assert (mutation.time_ms, mutation.entity) == (TIME, "Q1")
    integer = "<http://www.w3.org/2001/XMLSchema#integer>"
    assert mutation.patch.decode().splitlines() == [
        f'D <urn:a> <urn:p> "1"^^{integer} .',
        "A <urn:a> <urn:p> <urn:b> .",
        'A <urn:a> <urn:q> "x"@en .',
        f'A <urn:v> <urn:p> "2"^^{integer} .',
    ]


def test_shared_data_that_is_unlinked_stays() -> None:
    assert rows(MutationDecoder(), unlinked_shared="<urn:v> <urn:p> 2 .") == []


def test_a_delete_removes_what_the_events_of_the_entity_have_stated() -> None:
    decoder = MutationDecoder()
    decoder.decode(event("import", added="<urn:a> <urn:p> <urn:b>, <urn:c> .", linked_shared="<urn:v> <urn:p> 2 ."))
    decoder.decode(event("diff", added="<urn:a> <urn:p> <urn:d> .", deleted="<urn:a> <urn:p> <urn:b> ."))
    decoder.decode(event("import", "Q2", added="<urn:z> <urn:p> <urn:b> ."))
    assert rows(decoder, "delete") == ["D <urn:a> <urn:p> <urn:c> .", "D <urn:a> <urn:p> <urn:d> ."]
    with pytest.raises(DataError, match="Q1 is deleted, but no event has named its triples"):
        decoder.decode(event("delete"))


def test_a_reconciliation_replaces_the_entity() -> None:
    decoder = MutationDecoder()
    decoder.decode(event("import", added="<urn:a> <urn:p> <urn:b>, <urn:c> ."))
    assert rows(decoder, "reconcile", added="<urn:a> <urn:p> <urn:c>, <urn:d> .") == [
        "D <urn:a> <urn:p> <urn:b> .",
        "A <urn:a> <urn:p> <urn:c> .",
        "A <urn:a> <urn:p> <urn:d> .",
    ]
    assert rows(decoder, "delete") == ["D <urn:a> <urn:p> <urn:c> .", "D <urn:a> <urn:p> <urn:d> ."]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "a mutation"),
        (b"[]", "a mutation is a JSON object"),
        (b'{"operation": "diff"}', "'entity_id'"),
        (event().replace(b"2026-", b"x"), "event_time"),
        (event("merge"), "import, diff, delete or reconcile, not 'merge'"),
        (event(added=5), "rdf_added_data is"),
        (event(added={"data": "", "mime_type": "application/rdf+xml"}), "rdf_added_data is in Turtle"),
        (event(added={"data": "", "mime_type": "text/html"}), "unknown RDF format"),
        (event(added="<urn:a> <urn:p> ."), "line 1"),
    ],
)
def test_an_invalid_event_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(DataError) as error:
        MutationDecoder().decode(data)
    assert reason in str(error.value)


def test_a_difference_is_decoded_without_the_other_events() -> None:
    given = event("diff", added="<urn:a> <urn:p> <urn:b> .", deleted="<urn:a> <urn:p> <urn:c> .")
    assert decode_difference(given) == MutationDecoder().decode(given)
    for operation in ("delete", "reconcile"):
        with pytest.raises(DataError, match=f"Q1: {operation} does not contain the triples that it removes"):
            decode_difference(event(operation))
