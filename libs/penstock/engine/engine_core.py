"""The state that all parts of an engine share: the stored graph, the dictionary and the limits. `EngineCore` also maps
terms to ids.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.query.algebra.tree import Iri
from penstock.rdf.terms import IRI, LITERAL, private_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from penstock.core._native import Ids
    from penstock.engine.limits import Limits
    from penstock.engine.stored_graph import StoredGraph
    from penstock.query.algebra.tree import Literal
    from penstock.query.planner import PhysicalPlan


@dataclass(slots=True)
class EngineCore:
    """The shared state. `clock` returns the wall-clock time in ms. `random` provides the seeds of RAND, UUID and
    similar functions. `foreign` evaluates the functions that are implemented in Python. `attempt`: see
    `Evaluation.attempt`. `last_load` is the name of the last bulk load that was stored. `maintenance` counts the
    operators that can update their state from changes (ADR 78).
    """

    store: StoredGraph
    dictionary: native.Dictionary
    limits: Limits
    clock: Callable[[], int]
    random: Random
    foreign: native.Foreign | None
    attempt: int = 1
    last_load: str = ""
    maintenance: native.MaintenanceTotals = field(default_factory=native.MaintenanceTotals)

    # ---- the stored graph
    def stored(self, bounds: Sequence[tuple[int, int]], *, read: bool) -> native.Source:
        """Return a view of the stored graph. `bounds` contains pairs (stream number, batch number). For each pair, the
        view excludes the later batches of the stream.

        `read`: whether the execution reads the stored graph. If `read` is False, the call returns a placeholder.
        """
        return self.store.view(bounds) if read else self.store.unread(bounds)

    def forker(self, view: native.Source, physical: PhysicalPlan) -> native.Forker | None:
        """Return the object that executes the forks of a plan over `view`, or None. The result is None if the plan has
        no forks, or if fork-join is not available.
        """
        return self.store.forker(view, physical.fragments)

    # ---- terms
    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant. A new constant gets an id.

        The id stays valid while a lease exists that was created before this call. If there is no such lease, the caller
        must mark the id as used (`Dictionary.touch`) before unused terms are removed.
        """
        if isinstance(term, Iri):
            return self.dictionary.intern(IRI, term.value)
        return self.dictionary.intern(LITERAL, term.lexical, term.datatype, term.lang)

    def iri_id(self, iri: str) -> int:
        """Return the id of an IRI, as `term_id` does."""
        return self.term_id(Iri(iri))

    def known_ids(self, iris: Sequence[str]) -> list[int]:
        """Return the id of each IRI, or 0 for an IRI that the dictionary does not contain. The call assigns no ids."""
        return [self.dictionary.find(IRI, iri) for iri in iris]

    def graph_id(self, iri: str) -> int:
        """Return the id of a graph name, or 0 if the dictionary does not contain the name."""
        (number,) = self.known_ids((iri,))
        return number

    def require(self, columns: Sequence[Ids]) -> None:
        """Fetch the terms of the ids in `columns` that a partial dictionary does not contain. The call has no effect if
        the dictionary is complete. The caller must hold a lease, so that the dictionary retains the fetched terms.
        """
        if self.dictionary.partial and columns:
            self.dictionary.require(np.concatenate(columns))

    def absent(self, columns: Sequence[Ids]) -> list[int]:
        """Return the distinct private ids in columns of constants. With a partial dictionary, a constant has a private
        id if the cluster's dictionary does not contain the constant. An engine with its own dictionary has no private
        ids. The result is then [].
        """
        if not self.dictionary.partial or not columns:
            return []
        found: list[int] = np.unique(private_ids(np.concatenate(columns))).tolist()
        return found
