"""The constants whose ids a query engine fetches at a registration: planning reads no others."""

from __future__ import annotations

import random

import pytest

from penstock.engine.intake.declaration import Declaration
from penstock.engine.limits import Limits
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, make_plan
from penstock.query.parser import parse
from penstock.query.resolve import as_query, resolve
from penstock.services.coordinator.registrar import empty_runtime
from penstock.term_ids.cluster_terms import constants_of, term_tuple

S = "urn:x:s"


@pytest.mark.parametrize("clause", ["", "WITH ENTAILMENT RDFS"])
@pytest.mark.parametrize(
    "pattern",
    ["?s ?p ?o", "?s a <urn:C>", "?s a ?c ; <urn:p> 5", "GRAPH ?g { ?s <urn:p>/<urn:q>* ?o }", "<urn:n> ?p <urn:C>"],
)
def test_planning_reads_the_ids_of_no_other_constants(pattern: str, clause: str) -> None:
    runtime = empty_runtime(Limits(), lambda: 0, random.Random(0))
    runtime.streams.declare(Declaration.checked(S, timing="all"))
    text = f"REGISTER QUERY q AS SELECT * FROM STREAM <{S}> [RANGE 1s STEP 1s] {clause} WHERE {{ {pattern} }}"
    catalogue = EngineCatalogue(runtime.core, runtime.streams)
    fetched = set(constants_of(parse(text), catalogue))
    planned = make_plan(resolve(as_query(parse(text)), catalogue), catalogue, grouped=False)
    assert {term_tuple(constant) for constant in planned.constants} <= fetched
