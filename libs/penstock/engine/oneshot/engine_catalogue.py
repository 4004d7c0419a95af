"""The planner's view of an engine: the streams and graphs, the ids of constants, and statistics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from penstock.core import _native as native
from penstock.engine.oneshot.stored_schema import read_schema
from penstock.errors import DataPlaneError, LimitError, UnavailableError
from penstock.query.budget import planning
from penstock.query.catalogue import ALL_NAMED_GRAPHS, ANY_PREDICATE
from penstock.query.planner import PhysicalPlan, plan
from penstock.query.planning.entailment.schema import Schema
from penstock.query.templates import Template
from penstock.query.text_faults import LimitFault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import Streams
    from penstock.query.algebra.tree import Iri, Literal
    from penstock.query.budget import PlanningLimits
    from penstock.query.ir import ContinuousQuery
    from penstock.query.planning.cost.placement import Placement
    from penstock.query.templates import Constant

_COUNTED_LABELS = 64  # maximum number of labels whose counts are read for a pattern with a variable predicate

T = TypeVar("T")
CompiledPlan: TypeAlias = native.Plan


class EngineCatalogue:
    """A `penstock.query.catalogue.Catalogue` for one query. `windows` contains the sources of the query's windows, and
    is empty before these windows exist. `stored` is the view of the stored graph that the catalogue uses, or None if
    there is no view yet.

    `constants` contains every constant whose id can occur in the plan. `blind`: whether statistics of the stored graph
    were unavailable. The planner does not wait for unavailable statistics, but uses zeros instead.
    """

    def __init__(
        self,
        core: EngineCore,
        streams: Streams,
        windows: Sequence[native.Source | None] = (),
        stored: native.Source | None = None,
    ) -> None:
        self._core = core
        self._streams = streams
        self._windows = windows
        self._stored = self._view = stored  # statistics can be of another view, the schema cannot
        self.constants: dict[Iri | Literal, int] = {}
        self.blind = False
        self._schema: Schema | None = None

    @property
    def limits(self) -> PlanningLimits:
        """The engine's limits on plans."""
        return self._core.limits

    @property
    def placement(self) -> Placement | None:
        """The costs by which the planner decides where operators over the stored graph run. If the costs are None, all
        operators run in this process.
        """
        return self._core.store.placement

    def is_stream(self, iri: str) -> bool:
        """Return whether there is a stream with this IRI, declared or derived."""
        return iri in self._streams

    def batch_ms(self, stream: str) -> int:
        """Return the batch interval of a stream in ms."""
        return self._streams.get(stream).batch_ms

    def timing(self, stream: str) -> bool:
        """Return whether a stream has timing predicates."""
        return bool(self._streams.get(stream).declaration.timing)

    def retention_ms(self, stream: str) -> int:
        """Return the declared retention of a stream in ms."""
        return self._streams.get(stream).declaration.retention_ms

    def graph_history(self, stream: str) -> bool:
        """Return whether the stored graph of a cluster is readable as of the retained instants of a stream."""
        return self._streams.get(stream).declaration.graph_history

    def has_graph(self, iri: str) -> bool:
        """Return whether the named graph `iri` exists. The graph exists if the stored graph contains the graph, or if a
        stream adds tuples to the graph.
        """
        if any(stream.declaration.absorb_into == iri for stream in self._streams):
            return True
        graph = self._core.graph_id(iri)
        return graph != 0 and graph in self._core.store.labels.graphs()

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant, and record it in `constants`. A new constant gets an id."""
        if term not in self.constants:
            self.constants[term] = self._core.term_id(term)
        return self.constants[term]

    def label_stats(self, source: int, graph: int, predicate: int) -> tuple[int, int, int]:
        """Return the numbers of edges, distinct subjects and distinct objects of an edge label in a source. The numbers
        are zeros if the label or the window does not exist yet, or if the stored graph is unavailable.

        For ANY_PREDICATE, the numbers are the sums over all labels of the graph, extrapolated from at most 64 labels.
        """
        if predicate == ANY_PREDICATE:
            return self._sums(source, graph)
        label = self._core.store.labels.label(graph, predicate)
        return self._count(source, lambda found: native.source_stats(found, label), (0, 0, 0)) if label else (0, 0, 0)

    def _sums(self, source: int, graph: int) -> tuple[int, int, int]:
        graphs, _ = self._core.store.labels.label_pairs()
        labels = np.flatnonzero(graphs != 0 if graph == ALL_NAMED_GRAPHS else graphs == graph) + 1
        some = labels[:_COUNTED_LABELS].tolist()
        counts = [self._count(source, partial(native.source_stats, label=label), (0, 0, 0)) for label in some]
        scale = len(labels) / max(len(some), 1)
        edges, subjects, objects = (round(scale * sum(column)) for column in zip((0, 0, 0), *counts, strict=True))
        return edges, subjects, objects

    def degree(self, source: int, vertex: int, graph: int, predicate: int, direction: int) -> int:
        """Return the exact number of edges with a label at a vertex. `direction` is 0 for outgoing edges and 1 for
        incoming edges.
        """
        label = self._core.store.labels.label(graph, predicate)
        return (
            self._count(source, lambda found: native.source_degree(found, vertex, label, direction), 0) if label else 0
        )

    def schema(self) -> Schema:
        """Return the schema triples in the view of the stored default graph, for entailment. DataPlaneError if the view
        cannot be read.

        In a cluster, the schema is empty before there is a view, because a registration does not read the stores. The
        first evaluation replaces the plan of the registration.
        """
        if self._schema is None:
            if self._view is None and self._core.dictionary.partial:
                self._schema = Schema.empty()
            else:
                view = self._stored_graph() if self._view is None else self._view
                self._schema = read_schema(self._core, view)
        return self._schema

    def _count(self, source: int, count: Callable[[native.Source], T], absent: T) -> T:
        """Call the function `count` for the source with the number `source`, and return the result. The number 0 stands
        for the stored graph. Return `absent` if the source does not exist or is unavailable. After the failure of a
        store, the call retries once with a new view.
        """
        if source:
            found = self._windows[source - 1] if source <= len(self._windows) else None
            return absent if found is None else count(found)
        try:
            try:
                return count(self._stored_graph())
            except DataPlaneError:
                self._stored = None
                return count(self._stored_graph())
        except (UnavailableError, DataPlaneError):
            self.blind = True
            return absent

    def _stored_graph(self) -> native.Source:
        if self.blind:
            raise UnavailableError("the stored graph could not be read before")
        if self._stored is None:
            self._stored = self._core.store.glance()
        return self._stored


@dataclass(slots=True)
class Planned:
    """A compiled physical plan, with the constants whose ids the plan contains. `factors` contains the plans of the
    factors.

    `reads_stored`: whether an execution reads the stored graph. This is also true if an execution reads only the
    graph's schema. `blind`: whether the plan was chosen without statistics of the stored graph.
    """

    physical: PhysicalPlan
    native: CompiledPlan
    constants: dict[Iri | Literal, int]
    reads_stored: bool
    blind: bool
    factors: tuple[CompiledPlan, ...] = ()

    @property
    def constant_ids(self) -> Ids:
        """The ids of constants that the plan contains."""
        return np.fromiter(self.constants.values(), np.uint64, len(self.constants))


def make_plan(
    query: ContinuousQuery | Template,
    catalogue: EngineCatalogue,
    *,
    grouped: bool,
    sample: Sequence[Constant] = (),
    accepted: bool = False,
) -> Planned:
    """Plan and compile a query, or the template of a group. QueryLimitError if the plan exceeds the engine's limits on
    plans.

    `grouped`: whether the plan is for the members of a group. `sample` contains the constants of one member, for
    estimates. `accepted`: whether the query was accepted before, at its registration.
    """
    asked = query.query if isinstance(query, Template) else query
    with planning(catalogue.limits, asked.text, accepted=accepted) as budget:
        physical = plan(query, catalogue, grouped=grouped, sample=sample)
        reads_stored = physical.schema is not None or any(map(_reads_stored, (physical.spec, *physical.factors)))
        try:
            factors = tuple(native.Plan(spec) for spec in physical.factors)
            compiled = native.Plan(physical.spec)
        except LimitError as error:  # the native module does not know the position in the text
            raise LimitFault(str(error), budget.at) from None
        budget.look()
        return Planned(physical, compiled, catalogue.constants, reads_stored, catalogue.blind, factors)


def _reads_stored(spec: object) -> bool:
    """Return whether an operator of a plan reads the stored graph (docs/plan-format.md)."""
    waiting = [spec]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            if found.get("src") == 0:
                return True
            waiting += found.values()
        elif isinstance(found, list | tuple):
            waiting += found
    return False
