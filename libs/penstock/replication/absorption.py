"""What of the spine's steps becomes part of the stored graph, and under which numbers: the same for whoever follows it.

A commit is a batch with a timeless tuple, or an insertion. Commits are numbered in the order of the spine: their number
is the snapshot, on all stores. So are edge labels: a batch numbers those that its windows have, then those that it
stores, each in the order of predicates' ids; an insertion numbers its own in the order of arrival. Steps that store
nothing spend no number: there are 2³² of them (ADR 38).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.rdf.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTuple
    from penstock.engine.intake.declaration import Declaration


class Labelling(Protocol):
    """A stored graph as far as its edge labels go (`native.Labelled`)."""

    def number_labels(self, graphs: Ids, predicates: Ids) -> NDArray[np.uint32]:
        """Return the labels' numbers; new ones get the next."""


class TermEncoder(Protocol):
    """The part of the dictionary service that is needed here."""

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return ids, durable by now. TransientError: try again."""
        ...


@dataclass(frozen=True, slots=True)
class Absorption:
    """What of a stream's tuples is stored, and where. `timing` None: nothing is."""

    timing: tuple[int, ...] | None
    graph: int = 0

    @classmethod
    def of(cls, declaration: Declaration, terms: TermEncoder) -> Absorption:
        """Ask for the ids that a declaration names. TransientError: the dictionary cannot tell now."""
        if declaration.timing == "all":
            return cls(None)
        names = [*declaration.timing, *([] if declaration.absorb_into is None else [declaration.absorb_into])]
        ids = terms.encode([(IRI, name, "", "") for name in names]).tolist() if names else []
        count = len(declaration.timing)
        return cls(tuple(ids[:count]), ids[count] if declaration.absorb_into is not None else 0)

    def stored(self, predicates: Ids) -> NDArray[np.bool_]:
        """Tell which tuples are timeless."""
        if self.timing is None:
            return np.zeros(len(predicates), bool)
        return ~np.isin(predicates, np.array(self.timing, np.uint64))


def batch_labels(graph: Labelling, absorption: Absorption, predicates: Ids) -> NDArray[np.uint32]:
    """Number the labels of a batch; returns what each tuple is stored under, 0 where it is not."""
    distinct, places = np.unique(predicates, return_inverse=True)
    graph.number_labels(np.zeros(len(distinct), np.uint64), distinct)
    stored = absorption.stored(distinct)
    labels = np.zeros(len(distinct), np.uint32)
    labels[stored] = graph.number_labels(np.full(int(stored.sum()), absorption.graph, np.uint64), distinct[stored])
    found: NDArray[np.uint32] = labels[places]
    return found
