"""State shared by all parts of an engine: the stored graph, the dictionary, limits, and the mapping of terms to ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.query.algebra.tree import Iri
from penstock.rdf.terms import IRI, LITERAL, private_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.limits import Limits
    from penstock.engine.stored_graph import StoredGraph
    from penstock.query.algebra.tree import Literal
    from penstock.query.planner import PhysicalPlan


@dataclass(slots=True)
class EngineCore:
    """The shared state. `clock` returns wall-clock milliseconds; `random` seeds RAND and UUID; `foreign` evaluates the
    functions that are implemented in Python; `attempt` is 1, and one more after each crash; `last_load` is the name of
    the last applied bulk load.
    """

    store: StoredGraph
    dictionary: native.Dictionary
    limits: Limits
    clock: Callable[[], int]
    random: Random
    foreign: native.Foreign | None
    attempt: int = 1
    last_load: str = ""

    # ---- the stored graph
    def stored(self, bounds: Sequence[tuple[int, int]], *, read: bool) -> native.Source:
        """Return a view of the stored graph. For each (stream, batch) in `bounds`, it excludes later batches.

        `read`: whether the execution reads the stored graph; otherwise a placeholder is returned.
        """
        return self.store.view(bounds) if read else self.store.unread(bounds)

    def forker(self, view: native.Source, physical: PhysicalPlan) -> native.Forker | None:
        """Return the object that executes the forks of a plan over `view`, or None if the plan has no forks or
        fork-join is not available.
        """
        return self.store.forker(view, physical.fragments)

    # ---- terms
    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant, assigning one if necessary. The id stays valid while a lease exists that was
        created before this call, or if the caller marks it as used (`Dictionary.touch`) before each collection of
        terms.
        """
        if isinstance(term, Iri):
            return self.dictionary.intern(IRI, term.value)
        return self.dictionary.intern(LITERAL, term.lexical, term.datatype, term.lang)

    def iri_id(self, iri: str) -> int:
        """Return the id of an IRI, assigning one if necessary."""
        return self.term_id(Iri(iri))

    def graph_id(self, iri: str) -> int:
        """Return the id of a graph name, 0 if it was never used."""
        return self.dictionary.find(IRI, iri)

    def require(self, columns: Sequence[Ids]) -> None:
        """Fetch the missing terms of these ids into the cache of a partial dictionary. The caller holds a lease, which
        retains them.
        """
        if self.dictionary.partial and columns:
            self.dictionary.require(np.concatenate(columns))

    def absent(self, columns: Sequence[Ids]) -> list[int]:
        """Return the distinct private ids in the columns. With a partial dictionary, these are the constants that the
        cluster's dictionary does not contain. An engine with its own dictionary has none: [].
        """
        if not self.dictionary.partial or not columns:
            return []
        found: list[int] = np.unique(private_ids(np.concatenate(columns))).tolist()
        return found
