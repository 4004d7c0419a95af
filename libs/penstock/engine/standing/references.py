"""The terms to which standing queries refer. A sweep of the dictionary must not remove these terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.sets.set_groups import SetCohort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.core._native import Ids
    from penstock.engine.answers.answer_versions import AnswerVersion
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.standing.groups import Cohort
    from penstock.engine.standing.registry import Registry


class References:
    """The terms of the queries of a registry."""

    def __init__(self, core: EngineCore, registry: Registry) -> None:
        self._core, self._registry = core, registry

    def renew_leases(self) -> None:
        """Renew the leases of the answers that will be compared with later answers (`AnswerVersion.renew`). Call this
        method before a sweep of the dictionary. The caller must then mark the terms of `roots` as used.
        """
        for cohort in self._registry.cohorts:
            for version in _answers(cohort):
                version.renew(self._core.dictionary)

    def roots(self) -> Iterator[Ids]:
        """Yield ids of terms. Plans, members or previous answers (`Cohort.predecessor`, `Cohort.saved`) refer to these
        terms.
        """
        for group in self._registry.groups:
            if group.plan is not None:
                yield group.plan.constant_ids
            for cohort in group.cohorts:
                yield from cohort.members.seed[1:]
                for version in _answers(cohort):
                    yield from version.ids()
                if isinstance(cohort, SetCohort):
                    yield from cohort.columns.keys


def _answers(cohort: Cohort) -> Iterator[AnswerVersion]:
    if cohort.predecessor is not None:
        yield cohort.predecessor
    if cohort.saved is not None and cohort.saved is not cohort.predecessor:
        yield cohort.saved
