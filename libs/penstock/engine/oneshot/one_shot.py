"""One-shot queries on the latest snapshot. One-shot queries do not wait for writers (docs/semantics.md §3)."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from cachetools import LRUCache

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions, Triples
from penstock.engine.oneshot.asked_query import AskedQuery
from penstock.engine.oneshot.drawn_plan import drawn
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, make_plan
from penstock.engine.oneshot.failed_frames import clear_locals
from penstock.engine.oneshot.generic_plans import GenericPlans
from penstock.engine.oneshot.texts import CACHED_TEXT
from penstock.errors import DataPlaneError, LimitError, QueryError
from penstock.query.ir import Form
from penstock.query.prepared import BoundQuery
from penstock.query.protocol_dataset import query_with
from penstock.query.resolve import as_query, error_at

if TYPE_CHECKING:
    from collections.abc import Callable

    import rdflib

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import Streams
    from penstock.engine.oneshot.generic_plans import Seed
    from penstock.engine.oneshot.texts import Texts
    from penstock.query.ir import ContinuousQuery, Dataset, Statement

    _Key: TypeAlias = tuple[str, str | None, Dataset | None]
    """A text, the base of the text, and the dataset that replaces the dataset in the text."""

_MAX_RETRIES = 3  # maximum number of retries of a query after failures of stores
_TIME_EVERY = 16  # number of uses of a plan between two executions whose times are measured


class OneShot:
    """Plans, executes and explains one-shot queries. Any thread can call the methods. `generic` is a cache of plans,
    which several `OneShot` objects can share.
    """

    def __init__(self, core: EngineCore, streams: Streams, texts: Texts, generic: GenericPlans | None = None) -> None:
        self._core = core
        self._streams = streams
        self._texts = texts
        self._plans: LRUCache[_Key, AskedQuery] = LRUCache(core.limits.plan_cache)
        self._generic = GenericPlans(streams, core.limits.plan_cache) if generic is None else generic
        self._caching = Lock()

    def query(
        self,
        text: str,
        base: str | None,
        timeout_s: float | None,
        memory_mb: int | None,
        dataset: Dataset | None = None,
    ) -> Solutions | bool | rdflib.Graph:
        """Return the answer of a query on one snapshot. QueryError if the text is not a valid one-shot query.
        LimitError if the query exceeds `timeout_s` seconds or `memory_mb` MiB (None: the engine's limits). `dataset`
        replaces the dataset in the text.
        """
        key = text, base, dataset
        known = self._known(key)
        bound = self._texts.bound_query(text, base) if known is None and dataset is None else None
        # Acquire the lease before any constant is interned. The lease then also retains the constants.
        lease = self._core.dictionary.lease()
        asked, result = self._run(lambda view, number: self._ask(key, known, bound, view, number), timeout_s, memory_mb)
        if asked.query.form is Form.ASK:
            return result.rows > 0
        columns = result.columns(asked.slots)
        if asked.query.form is Form.SELECT:
            return Solutions(asked.variables, columns, result.rows, result.local, lease)
        return Triples(columns, result.rows, result.local, lease).graph()

    def solutions(self, query: ContinuousQuery | BoundQuery, source: native.Source) -> tuple[tuple[Ids, ...], int]:
        """Return the columns of a SELECT over `source`, as ids of the dictionary, and the number of the solutions. The
        caller must hold a lease of the dictionary. LimitError if the query exceeds the engine's limits.
        """
        seed: Seed = ()
        if isinstance(query, BoundQuery):
            asked, seed = self._generic.find(self._core, query, source)
        else:
            catalogue = EngineCatalogue(self._core, self._streams, stored=source)
            asked = AskedQuery.of(query, make_plan(query, catalogue, grouped=False))
        result = self._execute(asked, seed, source, None, None)
        return result.published(asked.slots), result.rows

    def explain(self, ir: ContinuousQuery, base: str | None) -> str:
        """Return the plan of a query with current estimates. If the same text was executed before, the result also has
        the figures of the last execution.
        """
        asked = self._known((ir.text, base, None))
        fresh = make_plan(ir, EngineCatalogue(self._core, self._streams), grouped=False).physical
        if asked is None or asked.last_run is None:
            return fresh.render()
        planned, profile, timed = asked.last_run
        return drawn(fresh, planned.physical, profile.rows(), timed.nanos())

    def _run(
        self,
        ask: Callable[[native.Source, int | None], tuple[AskedQuery, Seed]],
        timeout_s: float | None,
        memory_mb: int | None,
    ) -> tuple[AskedQuery, native.Result]:
        """Execute a plan on a view. The function `ask` finds the plan. The first argument of `ask` is the view. The
        second argument is the number of the view's snapshot, or None if the number is unknown. After the failure of a
        store, the call retries on a new view.

        The call first creates the view, and then looks up the ids of constants. If a constant has no id at the look-up,
        the constant does not occur in the view.
        """
        retries = 0
        while True:
            number = self._core.store.latest()
            view = self._core.store.view()
            unchanged = self._core.store.latest() == number
            try:
                asked, seed = ask(view, number if unchanged else None)
                return asked, self._execute(asked, seed, view, timeout_s, memory_mb)
            except BaseException as error:
                del view  # an error can live long, and must not retain the view
                clear_locals(error)
                retries += 1
                if not isinstance(error, DataPlaneError):
                    raise
                if retries > _MAX_RETRIES:
                    self._core.store.give_up(error)
                    raise

    def _ask(
        self, key: _Key, known: AskedQuery | None, bound: BoundQuery | None, view: native.Source, number: int | None
    ) -> tuple[AskedQuery, Seed]:
        """Return a query with its plan, and the plan's input."""
        if bound is not None:
            try:
                return self._generic.find(self._core, bound, view)
            except QueryError:  # the error has a position in another text
                pass
        text, base, dataset = key
        ir = query_with(_one_shot(self._texts.parse(text, base)), dataset) if known is None else known.query
        return self._asked(ir, key, known, view, number), ()

    def _execute(
        self, asked: AskedQuery, seed: Seed, view: native.Source, timeout_s: float | None, memory_mb: int | None
    ) -> native.Result:
        limits, core = self._core.limits, self._core
        profile = native.Profile()  # one per execution, because several threads can execute the same text at once
        timed = asked.timed if asked.uses % _TIME_EVERY else None
        if timed is None:  # reading clocks would take a third of a small query's time
            profile.timed = True
            timed = profile
        absent: list[int] | tuple[()] = ()
        if core.dictionary.partial:
            absent = core.absent([asked.planned.constant_ids, np.array(seed[1:], np.uint64)])
        try:
            result = native.execute(
                asked.planned.native,
                core.store.labels,
                core.dictionary,
                [view],
                seed,
                now_ms=core.clock(),
                timeout_s=limits.query_timeout_s if timeout_s is None else timeout_s,
                memory_bytes=(limits.evaluation_memory_mb if memory_mb is None else memory_mb) << 20,
                random_seed=core.random.getrandbits(63),
                foreign=core.foreign,
                profile=profile,
                forker=core.forker(view, asked.planned.physical),
                absent=absent,
            )
        except MemoryError as error:
            raise LimitError("the query ran out of memory") from error
        asked.timed = timed
        if not (profile.reused and asked.last_run):  # no operator ran (ADR 48): the figures of the last run remain
            asked.last_run = asked.planned, profile, timed
        return result

    def _asked(
        self, ir: ContinuousQuery, key: _Key, asked: AskedQuery | None, view: native.Source, number: int | None
    ) -> AskedQuery:
        """Return the plan of a query. The call replans if the statistics have changed too much, or if a constant has
        another id now.

        The dictionary can drop a constant that no stored data contain, and assign the constant's id to another term.
        """
        if asked is not None and asked.holds(self._core, self._streams, view, number):
            return asked
        planned = make_plan(ir, EngineCatalogue(self._core, self._streams, stored=view), grouped=False)
        last_run = None if asked is None else asked.last_run
        asked = AskedQuery.of(ir, planned)
        asked.last_run = last_run
        if len(ir.text) <= CACHED_TEXT:
            with self._caching:
                self._plans[key] = asked
        return asked

    def _known(self, key: _Key) -> AskedQuery | None:
        with self._caching:
            try:
                return self._plans[key]
            except KeyError:
                return None


def _one_shot(statement: Statement) -> ContinuousQuery:
    query = as_query(statement)
    if query.continuous:
        ways = "use Engine.register, Client.register or PUT /queries/NAME"
        raise error_at(query, query.at, f"a continuous query is registered, not asked: {ways}")
    return query
