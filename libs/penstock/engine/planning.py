"""The engine as the planner sees it: which streams and graphs exist, ids of constants, exact counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from penstock.errors import DataPlaneError
from penstock.query.planner import PhysicalPlan, plan
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.engine.answers import Ids
    from penstock.engine.core import Core
    from penstock.engine.streams import Streams
    from penstock.query.algebra import Iri, Literal
    from penstock.query.ir import ContinuousQuery
    from penstock.query.planning.placement import Placement
    from penstock.query.templates import Constant, Template

T = TypeVar("T")
CompiledPlan: TypeAlias = native.Plan


class EngineCatalogue:
    """A `penstock.query.catalogue.Catalogue` for one query. `windows` are its windows' sources, none before they exist.

    `constants` collects every constant whose id the plan may hold.
    """

    def __init__(self, core: Core, streams: Streams, windows: Sequence[native.Source | None] = ()) -> None:
        self._core = core
        self._streams = streams
        self._windows = windows
        self.constants: dict[Iri | Literal, int] = {}

    @property
    def placement(self) -> Placement | None:
        """How steps may be executed where the engine works over nodes."""
        return None if self._core.nodes is None else self._core.nodes.placement

    def is_stream(self, iri: str) -> bool:
        """Whether a stream of that name is declared (or derived)."""
        return iri in self._streams

    def batch_ms(self, stream: str) -> int:
        """The stream's batch interval."""
        return self._streams.get(stream).batch_ms

    def timing(self, stream: str) -> bool:
        """Whether the stream has timing predicates."""
        return bool(self._streams.get(stream).declaration.timing)

    def retention_ms(self, stream: str) -> int:
        """The stream's declared retention."""
        return self._streams.get(stream).declaration.retention_ms

    def has_graph(self, iri: str) -> bool:
        """Whether the graph is loaded, or some stream absorbs into it."""
        if any(stream.declaration.absorb_into == iri for stream in self._streams):
            return True
        graph = self._core.graph_id(iri)
        return graph != 0 and graph in self._core.store.graphs()

    def term_id(self, term: Iri | Literal) -> int:
        """The id of a constant, made where it is new, and noted in `constants`."""
        if term not in self.constants:
            self.constants[term] = self._core.term_id(term)
        return self.constants[term]

    def label_stats(self, source: int, graph: int, predicate: int) -> tuple[int, int, int]:
        """(edges, distinct subjects, distinct objects) of a label; zeros where the window is not built."""
        label = self._core.store.label(graph, predicate)
        return self._count(source, lambda found: native.source_stats(found, label), (0, 0, 0)) if label else (0, 0, 0)

    def degree(self, source: int, vertex: int, graph: int, predicate: int, direction: int) -> int:
        """Exact length of one neighbour list."""
        label = self._core.store.label(graph, predicate)
        return (
            self._count(source, lambda found: native.source_degree(found, vertex, label, direction), 0) if label else 0
        )

    def _count(self, source: int, count: Callable[[native.Source], T], absent: T) -> T:
        """Ask a source; where a node's end interrupts that, once more, over a view that waits for the node."""
        found = self._source(source)
        if found is None:
            return absent
        try:
            return count(found)
        except DataPlaneError:
            self.__dict__.pop("_stored", None)
            return count(self._stored)

    @cached_property
    def _stored(self) -> native.Source:
        return self._core.store.view()

    def _source(self, source: int) -> native.Source | None:
        if source == 0:
            return self._stored
        return self._windows[source - 1] if source <= len(self._windows) else None


@dataclass(slots=True)
class Planned:
    """A physical plan, compiled, with the constants whose ids stand in it. `factors` are its factors' plans."""

    physical: PhysicalPlan
    native: CompiledPlan
    constants: dict[Iri | Literal, int]
    factors: tuple[CompiledPlan, ...] = ()

    @property
    def constant_ids(self) -> Ids:
        """Ids that stand in the plan."""
        return np.fromiter(self.constants.values(), np.uint64, len(self.constants))


def make_plan(
    query: ContinuousQuery | Template,
    catalogue: EngineCatalogue,
    *,
    grouped: bool,
    sample: Sequence[Constant] = (),
) -> Planned:
    """Plan and compile a query (or a group's template)."""
    physical = plan(query, catalogue, grouped=grouped, sample=sample)
    factors = tuple(native.Plan(spec) for spec in physical.factors)
    return Planned(physical, native.Plan(physical.spec), catalogue.constants, factors)
