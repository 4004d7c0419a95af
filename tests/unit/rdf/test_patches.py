"""RDF Patches: rows that add and remove, and everything that makes a patch invalid."""

from __future__ import annotations

import pytest

from penstock import DataError
from penstock.core import _native as native
from penstock.rdf.patches import Patch, event_format, event_media_type, is_patch
from penstock.rdf.terms import decode

A, D = "A <urn:a> <urn:p> <urn:b> .", "D <urn:a> <urn:p> <urn:b> ."


def parsed(text: str) -> list[tuple[str, ...]]:
    dictionary = native.Dictionary()
    patch = Patch.parse(dictionary, text.encode())
    columns = [
        decode(native.LocalTerms(dictionary), column) for column in (patch.subjects, patch.predicates, patch.objects)
    ]
    rows = zip(patch.removed.tolist(), *columns, strict=True)
    return [("D" if removed else "A", *(str(term) for term in terms)) for removed, *terms in rows]


def test_rows_keep_their_order() -> None:
    assert parsed(f"{D}\n{A}\n{A}") == [
        ("D", "urn:a", "urn:p", "urn:b"),
        ("A", "urn:a", "urn:p", "urn:b"),
        ("A", "urn:a", "urn:p", "urn:b"),
    ]


def test_headers_prefixes_transactions_comments_and_white_space_change_nothing() -> None:
    text = (
        "# a patch\r\n"
        "H id <uuid:0686c69d-8f89-4496-acb5-744f0157a8db> .\n"
        'H note "a \\"text\\" . D"@en .\n'
        'H version "1"^^<urn:n> . # a comment\n'
        "TX .\n"
        'PA "rdf" "http://www.w3.org/1999/02/22-rdf-syntax-ns#" .\n'
        "PA : <urn:> .\n"
        'PD "rdf" .\n'
        '  A\t<urn:a> <urn:p> "x . # y" . # z\n'
        "\n"
        "D <urn:a> <urn:p> 'no' .\n".replace("'no'", '"no"')
        + "TC .\nTX .\nTC ."
    )
    assert parsed(text) == [("A", "urn:a", "urn:p", "x . # y"), ("D", "urn:a", "urn:p", "no")]


def test_an_empty_patch_has_no_rows() -> None:
    assert parsed("") == parsed("TX .\nTC .") == []


def test_a_blank_node_is_one_node_of_its_patch() -> None:
    rows = parsed("A _:x <urn:p> _:x .\nA _:y <urn:p> _:x .")
    assert rows[0][1] == rows[0][3] == rows[1][3] != rows[1][1]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"{A}\nX <urn:a> .", "line 2: no row of an RDF Patch: 'X <urn:a> .'"),
        ("<urn:a> <urn:p> <urn:b> .", "line 1: no row of an RDF Patch"),
        ("1 <urn:a> <urn:p> <urn:b> .", "line 1: no row of an RDF Patch"),
        ("a <urn:a> <urn:p> <urn:b> .", "line 1: no row of an RDF Patch"),
        ("A", "line 1: no row of an RDF Patch"),
        ("PA ex .", "line 1: no row of an RDF Patch"),
        ("H id .", "line 1: no row of an RDF Patch"),
        (f"{A}\nA <urn:a> <urn:p> .", "line 2, column 19"),
        (f"{A} {D}", "line 1, column 29"),
        ("A ex:a <urn:p> <urn:b> .", "line 1, column 3"),
        ('D "a" <urn:p> <urn:b> .', "line 1, column 3"),
        (f"TX .\n{A}", "line 1: TX without TC"),
        ("TX .\nTX .\nTC .", "line 2: TX in the transaction of line 1"),
        (f"{A}\nTC .", "line 2: TC without TX"),
        (f"TX .\n{A}\nTA .", "line 3: TA: the patch was aborted"),
        (f"{A}\nD <urn:a> <urn:p> <urn:b> <urn:g> .", "row 2 of the A and D rows names a graph"),
        ("D _:a <urn:p> <urn:b> .", "a D row has a blank node"),
        ("D <urn:a> <urn:p> _:b .", "a D row has a blank node"),
    ],
)
def test_an_invalid_patch_is_refused_with_the_place(text: str, reason: str) -> None:
    with pytest.raises(DataError) as error:
        parsed(text)
    assert reason in str(error.value)


def test_names_of_the_format() -> None:
    assert all(map(is_patch, ["rdf-patch", "application/rdf-patch; charset=utf-8", "RDFP"]))
    assert event_format("application/rdf-patch") == "rdf-patch"
    assert event_format("text/turtle") == "turtle"
    assert (event_media_type("nt"), event_media_type("rdf-patch")) == ("application/n-triples", "application/rdf-patch")
    with pytest.raises(DataError, match="unknown RDF format"):
        event_format("rdfa")
