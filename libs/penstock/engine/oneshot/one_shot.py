"""One-shot queries: the latest stable snapshot, read without waiting for writers (docs/semantics.md §3)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions, Triples
from penstock.engine.oneshot.cache import Cache
from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, Planned, make_plan
from penstock.errors import DataPlaneError, LimitError, QueryError
from penstock.query.ir import ContinuousQuery, Form, InsertData
from penstock.query.parser import parse
from penstock.query.resolve import error_at

if TYPE_CHECKING:
    import rdflib

    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import Streams
    from penstock.engine.limits import Limits
    from penstock.query.ir import Statement

_MAX_RETRIES = 3  # of a query that a node's end interrupted
_CACHED_TEXT = 1 << 16  # characters of a text that is worth its place in a cache
_REPLAN_EVERY = 64  # uses of a plan between looks at whether the counts still fit it


class Texts:
    """Parsed texts: a text asked again is not parsed again, unless it is long."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cache: Cache[tuple[str, str | None], Statement] = Cache(limits.text_cache)

    def parse(self, text: str, base: str | None, *, accepted: bool = False) -> Statement:
        """Return the text's checked form; QueryError where it has none. `accepted`: it was read before, elsewhere."""
        found = self._cache.get((text, base))
        if found is not None:
            return found
        statement = parse(text, base, limits=self._limits, accepted=accepted)
        return self._cache.put((text, base), statement) if len(text) <= _CACHED_TEXT else statement


@dataclass(slots=True)
class _Asked:
    """A one-shot text's plan, how often it was used, and what its last run did."""

    planned: Planned
    uses: int = 0
    profile: list[tuple[int, int, int]] = field(default_factory=list)


class OneShot:
    """Plans, runs and explains one-shot queries. Safe to call from any thread."""

    def __init__(self, core: EngineCore, streams: Streams, texts: Texts) -> None:
        self._core = core
        self._streams = streams
        self._texts = texts
        self._plans: Cache[tuple[str, str | None], _Asked] = Cache(core.limits.plan_cache)

    def query(
        self, text: str, base: str | None, timeout_s: float | None, memory_mb: int | None
    ) -> Solutions | bool | rdflib.Graph:
        """Return the answer over one snapshot; LimitError beyond the time or memory given (None = the engine's)."""
        ir = _one_shot(self._texts.parse(text, base))
        lease = self._core.dictionary.lease()  # before any constant is interned: they live as long as the answer
        asked, result = self._run(ir, base, timeout_s, memory_mb)
        asked.profile = result.profile
        positions = {slot: i for i, slot in enumerate(result.slots)}
        columns = [result.column(positions[slot]) for _, slot in asked.planned.physical.outputs]
        if ir.form is Form.ASK:
            return result.rows > 0
        if ir.form is Form.SELECT:
            return Solutions([v.name for v in ir.variables], columns, result.rows, result.local, lease)
        return Triples(columns, result.rows, result.local, lease).graph()

    def explain(self, ir: ContinuousQuery, base: str | None) -> str:
        """Return the plan with estimates, and with actual figures where the text was asked before."""
        asked = self._asked(ir, base)
        return asked.planned.physical.render(asked.profile or None)

    def _run(
        self, ir: ContinuousQuery, base: str | None, timeout_s: float | None, memory_mb: int | None
    ) -> tuple[_Asked, native.Result]:
        """Execute; where a node's end interrupts that, anew over what is there then.

        The snapshot is taken before constants are looked for: of one that nobody knows then, it holds nothing.
        """
        retries = 0
        while True:
            view = self._core.store.view()
            try:
                asked = self._asked(ir, base, view)
                return asked, self._execute(asked, view, timeout_s, memory_mb)
            except DataPlaneError as error:
                retries += 1
                if retries > _MAX_RETRIES:
                    self._core.store.give_up(error)
                    raise

    def _execute(
        self, asked: _Asked, view: native.Source, timeout_s: float | None, memory_mb: int | None
    ) -> native.Result:
        limits, core = self._core.limits, self._core
        try:
            return native.execute(
                asked.planned.native,
                core.store.labels,
                core.dictionary,
                [view],
                now_ms=core.clock(),
                timeout_s=limits.query_timeout_s if timeout_s is None else timeout_s,
                memory_bytes=(limits.evaluation_memory_mb if memory_mb is None else memory_mb) << 20,
                random_seed=core.random.getrandbits(63),
                foreign=core.foreign,
                profile=True,
                forker=core.forker(view, asked.planned.physical),
                absent=core.absent([asked.planned.constant_ids]),
            )
        except MemoryError as error:
            raise LimitError("the query ran out of memory") from error

    def _asked(self, ir: ContinuousQuery, base: str | None, view: native.Source | None = None) -> _Asked:
        """Return the text's plan, made anew where counts have moved away from it or a constant has another id by now.

        Constants that nothing stored uses may have been forgotten since; asking for their ids again says so.
        """
        asked = self._plans.get((ir.text, base))
        if asked is not None and self._holds(asked, view):
            return asked
        asked = _Asked(make_plan(ir, EngineCatalogue(self._core, self._streams, stored=view), grouped=False))
        return self._plans.put((ir.text, base), asked) if len(ir.text) <= _CACHED_TEXT else asked

    def _holds(self, asked: _Asked, view: native.Source | None) -> bool:
        if asked.planned.blind:
            return False
        asked.uses += 1
        for term, term_id in asked.planned.constants.items():
            if self._core.term_id(term) != term_id:
                return False
        if asked.uses % _REPLAN_EVERY:
            return True
        return not asked.planned.physical.replan_needed(EngineCatalogue(self._core, self._streams, stored=view))


def _one_shot(statement: Statement) -> ContinuousQuery:
    if isinstance(statement, InsertData):
        raise QueryError("an update is not a query: use Engine.update", 1, 1, "INSERT DATA", statement.text)
    if statement.continuous:
        raise error_at(statement, statement.at, "a continuous query is registered, not asked: use Engine.register")
    return statement
