"""Generic plans: plans of prepared queries. A generic plan takes the constants as a row of input."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from cachetools import LRUCache

from penstock.core import _native as native
from penstock.engine.oneshot.asked_query import AskedQuery
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, make_plan

if TYPE_CHECKING:
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import Streams
    from penstock.query.prepared import BoundQuery, PreparedQuery
    from penstock.query.templates import Constant

    _Degree: TypeAlias = tuple[int, int, int, int, int]
    """Five numbers: a vertex id or the index of a parameter, a graph, a predicate, a direction, and the number of
    neighbours.
    """

Seed: TypeAlias = tuple[int, ...]
"""The input row of a plan: the number of the member, and the ids of the parameters."""

_FACTOR = 4  # degrees that differ by a larger factor can favour another plan
_FLOOR = 64  # below this degree, the plan does not matter


@dataclass(frozen=True, slots=True, eq=False)
class GenericPlan:
    """A generic plan. `degrees` contains the degrees of the parameters for which the planner has chosen the plan."""

    asked: AskedQuery
    degrees: tuple[_Degree, ...]


class _RecordingCatalogue(EngineCatalogue):
    """A catalogue that records each degree for which the planner asks."""

    def __init__(self, core: EngineCore, streams: Streams, stored: native.Source) -> None:
        super().__init__(core, streams, stored=stored)
        self.degrees: list[_Degree] = []

    def degree(self, source: int, vertex: int, graph: int, predicate: int, direction: int) -> int:
        found = super().degree(source, vertex, graph, predicate, direction)
        self.degrees.append((vertex, graph, predicate, direction, found))
        return found


class GenericPlans:
    """A cache of generic plans. Any thread can use the cache.

    The planner chooses a generic plan for the constants of the first text. A constant's degree is the number of the
    constant's edges with a label. The cache also returns the plan for a later text if each constant has about the same
    degree as the corresponding constant of the first text. Other texts get plans of their own. PostgreSQL chooses
    between generic and custom plans in a similar way.
    """

    def __init__(self, streams: Streams, plans: int) -> None:
        """Create an empty cache. `plans` is the maximum number of plans."""
        self._streams = streams
        self._plans: LRUCache[PreparedQuery, GenericPlan] = LRUCache(plans)
        self._caching = Lock()

    def find(self, core: EngineCore, bound: BoundQuery, view: native.Source) -> tuple[AskedQuery, Seed]:
        """Return a query with a plan for an execution on a view, and the input of the plan. QueryError if there is no
        plan.

        The caller must acquire a lease of the dictionary before the call, and hold this lease for as long as the caller
        uses the result. The cores of all calls must have the same dictionary.
        """
        ids = [core.term_id(constant) for constant in bound.constants]
        with self._caching:
            generic = self._plans.get(bound.prepared)
        if generic is None or not generic.asked.holds(core, self._streams, view):
            generic = self._plan(core, bound, bound.prepared.sample, view)
            with self._caching:
                self._plans[bound.prepared] = generic
        if _serves(core, generic, ids, view):
            return generic.asked, (0, *ids)
        return self._plan(core, bound, bound.constants, view).asked, (0, *ids)

    def known(self, prepared: PreparedQuery) -> GenericPlan | None:
        """Return the generic plan of a prepared query. The result is None if there is no plan yet."""
        with self._caching:
            return self._plans.get(prepared)

    def _plan(
        self, core: EngineCore, bound: BoundQuery, sample: tuple[Constant, ...], view: native.Source
    ) -> GenericPlan:
        catalogue, template = _RecordingCatalogue(core, self._streams, view), bound.prepared.template
        planned = make_plan(template, catalogue, grouped=True, sample=sample)
        parameters = {catalogue.term_id(constant): i for i, constant in enumerate(sample)}
        degrees = [(parameters[v], g, p, d, n) for v, g, p, d, n in catalogue.degrees if v in parameters]
        return GenericPlan(AskedQuery.of(template.query, planned), tuple(degrees))


def _serves(core: EngineCore, generic: GenericPlan, ids: list[int], view: native.Source) -> bool:
    """Return whether a generic plan is good for other constants (`ids`). This is the case if each constant has about
    the same degree in the view as the corresponding constant of the first text.
    """
    labels = core.store.labels
    for parameter, graph, predicate, direction, degree in generic.degrees:
        label = labels.label(graph, predicate)
        found = native.source_degree(view, ids[parameter], label, direction) if label else 0
        if found > max(degree, _FLOOR) * _FACTOR or degree > max(found, _FLOOR) * _FACTOR:
            return False
    return True
