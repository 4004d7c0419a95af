"""The schema of a snapshot: the triples of the stored default graph that entailment reads (docs/semantics.md §4)."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.query.algebra.vocabulary import SCHEMA
from penstock.query.planning.entailment.schema import Schema
from penstock.rdf.terms import IRI

if TYPE_CHECKING:
    from penstock.engine.engine_core import EngineCore


@cache
def _plan() -> native.Plan:
    """Return the plan that reads the triples with the predicates of its seed."""
    scan = {
        "op": "scan",
        "id": 0,
        "in": {"op": "seed", "id": 1},
        "s": {"var": 1},
        "p": {"var": 0},
        "o": {"var": 2},
        "dataset": [{"src": 0, "graphs": [0]}],
    }
    return native.Plan({"slots": 3, "seed": [0], "root": scan, "subplans": []})


def read_schema(core: EngineCore, view: native.Source) -> Schema:
    """Return the schema in a view of the stored graph. LimitError if the execution exceeds the engine's limits on an
    evaluation.
    """
    found = {iri: core.dictionary.find(IRI, iri) for iri in SCHEMA}
    predicates = {iri: number for iri, number in found.items() if number}
    seed = (np.fromiter(predicates.values(), np.uint64, len(predicates)),)
    result = native.execute(
        _plan(),
        core.store.labels,
        core.dictionary,
        [view],
        seed,
        seed_rows=len(predicates),
        timeout_s=core.limits.query_timeout_s,
        memory_bytes=core.limits.evaluation_memory_mb << 20,
    )
    return Schema(result.columns([0, 1, 2]), predicates, partial(_iri, result.local))


def _iri(terms: native.LocalTerms, number: int) -> str:
    (term,) = terms.decode(np.array((number,), np.uint64))
    assert term is not None
    return term[1]
