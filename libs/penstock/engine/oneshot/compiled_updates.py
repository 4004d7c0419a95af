"""Compiled updates (docs/adr/0088-prepared-texts.md). One call of the native core binds, evaluates and commits such an
update.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from penstock.core import _native as native
from penstock.engine.intake.graph_change import UpdateReport
from penstock.engine.oneshot.asked_query import REPLAN_EVERY
from penstock.engine.oneshot.normalization import LONGEST, normalize
from penstock.query.algebra.tree import Iri

if TYPE_CHECKING:
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.oneshot.generic_plans import GenericPlan, GenericPlans
    from penstock.query.prepared import BoundUpdate, PreparedText, UpdateParts
    from penstock.query.templates import Constant


class CompiledUpdates:
    """The compiled updates of an engine whose stored graph is in this process. The caller must hold the engine's
    lock. `generic`: the generic plans of the engine's one-shot queries.
    """

    def __init__(self, core: EngineCore, generic: GenericPlans) -> None:
        limits = core.limits
        self._core = core
        self._generic = generic
        memory, store = limits.evaluation_memory_mb << 20, core.store.labels
        assert isinstance(store, native.Store)
        self._native = native.CompiledUpdates(
            store, core.dictionary, core.foreign, limits.query_timeout_s, memory, limits.text_cache
        )
        self._compiled: WeakKeyDictionary[PreparedText, tuple[GenericPlan, native.CompiledUpdate]] = WeakKeyDictionary()

    def execute(self, text: str) -> UpdateReport | None:
        """Execute the update of a text as one snapshot. The result is None if the update is not compiled, or if the
        update's plan is not good for the constants of the text. In this case, nothing has changed. LimitError if the
        pattern exceeds the engine's limits.
        """
        if len(text) > LONGEST:
            return None
        core = self._core
        changed = self._native.execute(text, core.clock(), core.random.getrandbits(63))
        return None if changed is None else UpdateReport(*changed)

    def add(self, update: BoundUpdate) -> None:
        """Compile an update, if this is possible. The caller has just executed this update without the method
        `execute`. From now on, `execute` executes the later texts with the same prepared text. After some executions,
        `execute` returns None, so that the caller checks the statistics of the plan. The caller then calls `add` again.
        """
        plan, compiled = self._compiled.get(update.prepared, (None, None))
        if compiled is not None and compiled.left:
            return
        parts, normalized = update.prepared.parts(), normalize(update.text)
        generic = None if parts is None else self._generic.known(parts.query)
        if parts is None or normalized is None or generic is None:
            return
        planned = generic.asked.planned
        if planned.blind or planned.physical.schema is not None:  # each use needs a check
            return
        if compiled is None or plan is not generic:
            fixed = [(number, normalized.constants[number]) for number in update.prepared.fixed]
            compiled = _compiled(parts, fixed, generic)
            self._compiled[update.prepared] = generic, compiled
        self._native.add(normalized.pattern, compiled, REPLAN_EVERY - 1)
        generic.asked.check_next()


def _compiled(parts: UpdateParts, fixed: list[tuple[int, str]], generic: GenericPlan) -> native.CompiledUpdate:
    templates, seed, terms = parts.templates, parts.seed, list(parts.terms)
    expected = []
    if not generic.asked.permanent:
        for term, term_id in generic.asked.planned.constants.items():
            expected.append((len(terms), term_id))
            terms.append((None, term))
    return native.CompiledUpdate(
        generic.asked.planned.native,
        fixed,
        [(number, *_fields(term)) for number, term in terms],
        seed,
        parts.constants,
        templates.delete,
        templates.insert,
        generic.asked.slots,
        [(seed[parameter], g, p, d, n) for parameter, g, p, d, n in generic.degrees],
        expected,
    )


def _fields(term: Constant) -> tuple[bool, str, str, str]:
    """Return four values for a term: whether the term is an IRI, the text, the datatype and the language."""
    return (True, term.value, "", "") if isinstance(term, Iri) else (False, term.lexical, term.datatype, term.lang)
