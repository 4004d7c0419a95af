"""The schema of a snapshot: the triples of the stored default graph that entailment reads (docs/semantics.md §4)."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.query.algebra.vocabulary import DOMAIN, INVERSE, RANGE, SCHEMA, SUBPROPERTY
from penstock.query.planning.entailment.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore

_ABOUT_PROPERTIES = (SUBPROPERTY, DOMAIN, RANGE, INVERSE)


@cache
def _plan() -> native.Plan:
    """Return a plan with one scan. The plan's input is a table with one column of predicates. The scan reads the
    default graph's triples with these predicates.
    """
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
    evaluation. In a cluster, also DataPlaneError and UnavailableError.
    """
    # A predicate that gets its id after the view was created does not occur in the view.
    predicates = {iri: number for iri, number in zip(SCHEMA, core.known_ids(SCHEMA), strict=True) if number}
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
    columns = result.columns([0, 1, 2])
    return Schema(columns, predicates, _Names(core, result.local, columns, predicates))


class _Names:
    """Returns the IRIs of the terms of a schema. At the first call, a partial dictionary fetches the terms of all
    schema triples about properties, because a plan can contain many of these properties.
    """

    def __init__(
        self, core: EngineCore, terms: native.LocalTerms, columns: Sequence[Ids], predicates: Mapping[str, int]
    ) -> None:
        self._core, self._terms, self._columns = core, terms, columns
        self._predicates = [number for iri, number in predicates.items() if iri in _ABOUT_PROPERTIES]
        self._fetched = False

    def __call__(self, number: int) -> str:
        if not self._fetched:
            named, *ends = self._columns
            about = np.isin(named, self._predicates)
            self._core.require([end[about] for end in ends])
            self._fetched = True
        (term,) = self._terms.decode(np.array((number,), np.uint64))
        assert term is not None
        return term[1]
