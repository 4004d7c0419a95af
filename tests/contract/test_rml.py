"""The RML test cases of kg-construct (RML-Core, and the logical sources of RML-IO) for JSON and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph
import pytest

from penstock import DataError
from penstock.mapping.files.source_files import mapped_files
from penstock.mapping.rml import compile_rml
from support import shared

if TYPE_CHECKING:
    from pathlib import Path

SUITE = shared.need("suites/rml")
BASE = "http://example.com/"  # mandated by the manifest
NOT_SUPPORTED = {  # case -> the error that names the feature
    "RMLTC0027b-JSON": "a character that may not stand there",  # UnsafeIRI: the expected IRIs are not IRIs (RFC 3987)
    "RMLSTC0002c": "zip> is not supported",
    "RMLSTC0002d": "tarxz> is not supported",
    "RMLSTC0002e": "targz> is not supported",
    "RMLSTC0003": "SPARQL_Results_CSV> is not supported",
    "RMLSTC0006a": "SQL2008Table> is not supported",
    "RMLSTC0007c": "XPath> is not supported",
    "RMLSTC0007d": "rml:referenceFormulation must be a literal or an IRI",  # XPath with namespaces
    **{f"RMLSTC0012{letter}": "XPath> is not supported" for letter in "abcde"},
}
CASES = sorted([*SUITE.glob("core/RMLTC*"), *SUITE.glob("io/RMLSTC*")])


def triples(text: bytes) -> set[str]:
    found = pyoxigraph.Dataset(pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.N_QUADS))
    found.canonicalize(pyoxigraph.CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad) for quad in found}


def test_the_suite_is_whole() -> None:
    assert len([case for case in CASES if case.parent.name == "core"]) == 76
    assert len([case for case in CASES if case.parent.name == "io"]) == 32
    assert NOT_SUPPORTED.keys() <= {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_gives_the_expected_triples_or_an_error(case: Path) -> None:
    expected = [*case.glob("output.nq"), *case.glob("default.nq")]

    def mapped() -> bytes:
        return mapped_files(compile_rml((case / "mapping.ttl").read_text(encoding="utf-8"), BASE), case)

    if case.name in NOT_SUPPORTED:
        with pytest.raises(DataError, match=NOT_SUPPORTED[case.name]):
            mapped()
    elif expected:
        assert triples(mapped()) == triples(expected[0].read_bytes())
    else:
        with pytest.raises(DataError):
            mapped()
