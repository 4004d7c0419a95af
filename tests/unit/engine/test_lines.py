"""An evaluation as one line of JSON, whatever its literals hold."""

from __future__ import annotations

import json

import pyoxigraph as ox
import pytest

import penstock
from penstock.engine.answers.json_lines import json_line

ENDS = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\r\nj"
"""Everything that `str.splitlines` takes for the end of a line."""


@pytest.mark.parametrize("form", ["SELECT ?o", "CONSTRUCT { ?s ?p ?o }"])
def test_an_evaluation_is_one_line_to_every_reader(form):
    with penstock.Engine() as engine:
        engine.declare_stream("urn:x:s")
        query = engine.register(f"{form} FROM STREAM <urn:x:s> [RANGE 1s] WHERE {{ ?s ?p ?o }}")
        literal = str(ox.Literal(ENDS))
        engine.push("urn:x:s", f"<urn:x:b> <urn:x:p> {literal} .\n<urn:x:a> <urn:x:p> {literal} .", timestamp=1)
        engine.advance("urn:x:s", 1_000)
        (evaluation,) = query.poll()
    line = json_line(evaluation).decode()
    assert line.splitlines() == [line]
    record = json.loads(line)
    if "graph" in record:
        read = list(ox.parse(record["graph"], ox.RdfFormat.N_TRIPLES))
        assert [quad.subject.value for quad in read] == ["urn:x:a", "urn:x:b"]
        assert {quad.object.value for quad in read} == {ENDS}
    else:
        assert {row["o"]["value"] for row in record["results"]["bindings"]} == {ENDS}
