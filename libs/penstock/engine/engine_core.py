"""What every part of an engine shares: the native stored graph and dictionary, limits, and how terms become ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from penstock.query.algebra.tree import Iri
from penstock.rdf.terms import IRI, LITERAL, private_ids
from penstock.remote.remote_graph import RemoteGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from penstock.core import _native as native
    from penstock.engine.answers.answer_values import Ids
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.limits import Limits
    from penstock.errors import DataPlaneError
    from penstock.node.stream import RemoteStream
    from penstock.query.algebra.tree import Literal
    from penstock.query.planner import PhysicalPlan
    from penstock.query.planning.cost.placement import Placement
    from penstock.remote.fork_join import Forking


class Elsewhere(Protocol):
    """Whoever keeps the stored graph outside of this process: nodes of this engine alone, or a cluster's stores."""

    @property
    def placement(self) -> Placement | None:
        """How steps may be executed there; None: they are executed here."""

    @property
    def forking(self) -> Forking | None:
        """What takes steps there, if anything does."""

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary
    ) -> native.Stream | RemoteStream:
        """Return a stream whose timeless tuples are stored there."""


@dataclass(slots=True)
class EngineCore:
    """`clock` gives wall-clock milliseconds; `random` seeds RAND and UUID; `attempt` counts restarts after crashes;
    `last_load` names the prepared load that was taken in last.

    `store` is the stored graph, here or at `nodes`.
    """

    store: native.Store | RemoteGraph
    dictionary: native.Dictionary
    limits: Limits
    clock: Callable[[], int]
    random: Random
    foreign: native.Foreign | None
    attempt: int = 1
    last_load: str = ""
    nodes: Elsewhere | None = None

    # ---- the stored graph
    def stored(self, bounds: Sequence[tuple[int, int]], *, read: bool) -> native.Source:
        """Return the stored graph with no batches of those streams beyond the given ones. `read`: whether whoever asks
        looks into it at all.
        """
        if isinstance(self.store, RemoteGraph) and not read:
            return self.store.unread(bounds)
        return self.store.view(bounds)

    def glance(self) -> native.Source:
        """Return the stored graph for counts. AwayError where it would have to be waited for."""
        return self.store.glance() if isinstance(self.store, RemoteGraph) else self.store.view()

    def give_up(self, error: DataPlaneError) -> None:
        """Return where an evaluation that shards elsewhere have interrupted too often has failed; AwayError where it
        is to wait for them.
        """
        if isinstance(self.store, RemoteGraph):
            self.store.give_up(error)

    def forker(self, view: native.Source, physical: PhysicalPlan) -> native.Forker | None:
        """Return what takes the forks of a plan to the nodes, over their stored graph as that view shows it."""
        forking = None if self.nodes is None else self.nodes.forking
        return None if forking is None else forking.forker(view, physical.fragments)

    # ---- terms
    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant, made where it is new. It lives as long as a lease or `touch` keeps it."""
        if isinstance(term, Iri):
            return self.dictionary.intern(IRI, term.value)
        return self.dictionary.intern(LITERAL, term.lexical, term.datatype, term.lang)

    def iri_id(self, iri: str) -> int:
        """Return the id of an IRI, made where it is new."""
        return self.term_id(Iri(iri))

    def graph_id(self, iri: str) -> int:
        """Return the id of a graph's name, 0 where nobody ever used that name."""
        return self.dictionary.find(IRI, iri)

    def require(self, columns: Sequence[Ids]) -> None:
        """See to it that the terms of these ids are here, for whoever reads them under a lease that is held already."""
        if self.dictionary.partial and columns:
            self.dictionary.require(np.concatenate(columns))

    def absent(self, columns: Sequence[Ids]) -> list[int]:
        """Return those of a plan's constants and parameters that the source of a partial dictionary does not know."""
        if not self.dictionary.partial or not columns:
            return []
        found: list[int] = np.unique(private_ids(np.concatenate(columns))).tolist()
        return found
