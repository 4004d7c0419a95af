"""DISTINCT of one variable over many rows: ids close together, ids far apart, both, unbound cells, and the memory limit."""

from __future__ import annotations

import random

import pytest

import penstock
from penstock import LimitError
from penstock.engine.limits import Limits

ROWS = 20_000


def close(chance):
    return f"<urn:o:{chance.randrange(3_000)}>"


def apart(chance):
    return f'"{chance.randrange(6_000) * 1.37e9}"^^<http://www.w3.org/2001/XMLSchema#double>'


def both(chance):
    return chance.choice([close, apart])(chance)


@pytest.mark.parametrize("kind", [close, apart, both])
def test_each_value_is_in_the_answer_once_in_the_order_of_its_first_row(kind):
    chance = random.Random(kind.__name__)
    lines = [f"<urn:s:{i % 150}> <urn:p:{i}> {kind(chance)} ." for i in range(ROWS)]
    with penstock.Engine() as engine:
        engine.load("\n".join(lines).encode(), format="nt")
        every = [row["o"].n3() for row in engine.query("SELECT ?o { ?s ?p ?o }")]
        found = [row["o"].n3() for row in engine.query("SELECT DISTINCT ?o { ?s ?p ?o }")]
        assert len(every) == ROWS
        assert found == list(dict.fromkeys(every))
        some = [row["o"].n3() for row in engine.query("SELECT DISTINCT ?o { ?s ?p ?o } LIMIT 700")]
        assert some == found[:700]
        maybe = engine.query("SELECT DISTINCT ?o { ?s ?p ?x OPTIONAL { ?s ?p ?o FILTER(ISIRI(?o)) } }")
        assert len(maybe) == sum(each.startswith("<") for each in found) + (kind is not close)


def test_the_limit_of_memory_holds():
    lines = [f'<urn:s> <urn:p> "{i * 1.37e9}"^^<http://www.w3.org/2001/XMLSchema#double> .' for i in range(200_000)]
    with penstock.Engine(limits=Limits(evaluation_memory_mb=1)) as engine:
        engine.load("\n".join(lines).encode(), format="nt")
        with pytest.raises(LimitError, match="memory limit"):
            engine.query("SELECT (COUNT(*) AS ?n) { SELECT DISTINCT ?o { <urn:s> <urn:p> ?o } }")
