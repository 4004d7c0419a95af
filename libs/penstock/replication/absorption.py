"""Absorption: the tuples that a step adds to the stored graph, and the snapshot numbers and label numbers of these
tuples. All replicas compute the same numbers.

A commit is a batch with at least one timeless tuple, an insertion (possibly with removals), or a bulk load. Commits are
numbered in the total order. The number of a commit is its snapshot number in all stores. Edge labels are numbered in
the same order. A batch first numbers the labels of its windows, in order of predicate ids. The batch then numbers the
labels of its stored tuples, also in order of predicate ids. An insertion numbers its labels in order of arrival. A step
that stores nothing gets no snapshot number, because there are only 2³¹ snapshot numbers (ADR 38).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.rdf.terms import IRI

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.intake.declaration import Declaration
    from penstock.term_ids.outgoing_terms import TermEncoder


class Labelling(Protocol):
    """The edge labels of a stored graph (`native.Labelled`)."""

    def number_labels(self, graphs: Ids, predicates: Ids) -> NDArray[np.uint32]:
        """Return the edge-label number of each (graph, predicate) pair of term ids. A new label gets the next
        number.
        """


@dataclass(frozen=True, slots=True)
class Absorption:
    """The rule that determines which tuples of a stream are stored, and in which graph. `timing`: ids of the timing
    predicates. None means that no tuple is stored. `graph`: id of the graph, 0 for the default graph.
    """

    timing: tuple[int, ...] | None
    graph: int = 0

    @classmethod
    def of(cls, declaration: Declaration, terms: TermEncoder) -> Absorption:
        """Return the rule of a declared stream. Requests the ids of the declaration's IRIs from `terms`. TransientError
        if the ids are unavailable; retry.
        """
        if declaration.timing == "all":
            return cls(None)
        names = [*declaration.timing, *([] if declaration.absorb_into is None else [declaration.absorb_into])]
        ids = terms.encode([(IRI, name, "", "") for name in names]).tolist() if names else []
        count = len(declaration.timing)
        return cls(tuple(ids[:count]), ids[count] if declaration.absorb_into is not None else 0)

    def stored(self, predicates: Ids) -> NDArray[np.bool_]:
        """Return a mask of the timeless tuples, given their predicates."""
        if self.timing is None:
            return np.zeros(len(predicates), bool)
        return ~np.isin(predicates, np.array(self.timing, np.uint64))


def batch_labels(graph: Labelling, absorption: Absorption, predicates: Ids) -> NDArray[np.uint32]:
    """Number the labels of a batch. `predicates`: the predicate of each tuple. Returns the label number of each tuple,
    0 for tuples that are not stored.
    """
    distinct, places = np.unique(predicates, return_inverse=True)
    graph.number_labels(np.zeros(len(distinct), np.uint64), distinct)
    stored = absorption.stored(distinct)
    labels = np.zeros(len(distinct), np.uint32)
    labels[stored] = graph.number_labels(np.full(int(stored.sum()), absorption.graph, np.uint64), distinct[stored])
    found: NDArray[np.uint32] = labels[places]
    return found
