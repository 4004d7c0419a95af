"""A plan that several executions of one-shot queries share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.engine.oneshot.engine_catalogue import EngineCatalogue, Planned

if TYPE_CHECKING:
    from penstock.core import _native as native
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.intake.streams import Streams
    from penstock.query.ir import ContinuousQuery

REPLAN_EVERY = 64
"""The number of uses of a plan between two checks of the statistics."""


@dataclass(slots=True)
class AskedQuery:
    """A one-shot query, the query's plan, and the number of uses of the plan. `last_run` contains the plan and the
    figures of the last execution. Only some executions of `planned` measure times. `timed` is the profile of the last
    execution that has measured times. `permanent`: whether the ids of all constants are permanent. Permanent ids are
    not checked again. `entails_at` is the number of a snapshot whose schema fits the plan. `variables` and `slots` are
    the names and slots of the answer's columns.
    """

    query: ContinuousQuery
    variables: tuple[str, ...]
    planned: Planned
    slots: tuple[int, ...]
    uses: int = 0
    last_run: tuple[Planned, native.Profile, native.Profile] | None = None  # possibly with an earlier plan
    timed: native.Profile | None = None
    permanent: bool = False
    entails_at: int | None = None

    @classmethod
    def of(cls, query: ContinuousQuery, planned: Planned) -> AskedQuery:
        """Return a query with its plan."""
        names = tuple(variable.name for variable in query.variables)
        return cls(query, names, planned, tuple(slot for _, slot in planned.physical.outputs))

    def check_next(self) -> None:
        """Let the next use of the plan check the statistics."""
        self.uses = -1

    def holds(self, core: EngineCore, streams: Streams, view: native.Source, number: int | None = None) -> bool:
        """Return whether the plan is still valid for an execution on `view`. The call counts the execution.

        A plan that was chosen without statistics is invalid. The plan is also invalid if a constant has another id now.
        (The dictionary can drop a constant that no stored data contain, and assign the constant's id to another term.)
        A plan with entailment is also invalid if the schema has changed. In some calls, the plan is also invalid if the
        statistics have changed too much. `number` is the number of the view's snapshot, or None if this number is
        unknown.
        """
        if self.planned.blind:
            return False
        self.uses += 1
        if not self.permanent:
            for term, term_id in self.planned.constants.items():
                if core.term_id(term) != term_id:
                    return False
            self.permanent = core.dictionary.touch(self.planned.constant_ids)
        physical = self.planned.physical
        if physical.schema is not None and (number is None or number != self.entails_at):
            if not physical.entails(EngineCatalogue(core, streams, stored=view)):
                return False
            self.entails_at = number
        if self.uses % REPLAN_EVERY:
            return True
        return not physical.replan_needed(EngineCatalogue(core, streams, stored=view))
