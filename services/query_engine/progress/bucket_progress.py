"""The progress of a query group: the state from which another engine can continue the group. Each transaction contains
results together with the progress.

The progress has four parts. These are the last instant, the count windows, the previous answers that ISTREAM, DSTREAM
and `changes` need (`saved_answers`), and an event time for each stream. The group no longer needs the tuples of a
stream up to and including this event time. The progress does not contain time windows, because an engine restores time
windows from slices.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.answers.membership import Membership
from penstock.engine.windows.slice_release import held_from
from penstock.engine.windows.trigger import CountTrigger
from penstock.replication.progress_log import GroupState
from penstock.services.query_engine.progress.saved_answers import RestoredAnswers, SavedAnswers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.standing.groups import Cohort, Group


def answers_of(dictionary: native.Dictionary) -> SavedAnswers:
    """Return the `SavedAnswers` of a new group of queries. No answers are saved yet."""
    return SavedAnswers(dictionary, _names)


def _names(cohort: Cohort, numbers: Ids) -> list[str]:
    names = [member.name for member in cohort]
    return [names[number - 1] for number in numbers.tolist()]


def progress_of(
    number: int, group: Group, last_ms: int | None, answers: SavedAnswers, complete: Collection[int] = ()
) -> GroupState:
    """Return the progress of group `number`, which was evaluated up to instant `last_ms` (None: not yet). `complete`:
    see `GroupState.complete`; the argument can also contain queries of other groups.
    """
    counted = {_key(c): c.trigger.save() for c in group.cohorts if isinstance(c.trigger, CountTrigger)}
    earlier, pieces = answers.save(group.cohorts)
    return GroupState(
        number,
        last_ms,
        retention_floors(group),
        json.dumps(counted) if counted else None,
        complete=json.dumps(numbers) if (numbers := [n for n in map(int, group.names()) if n in complete]) else None,
        answers=pieces,
        earlier=earlier,
    )


def complete_queries(saved: GroupState) -> list[int]:
    """Return the numbers of the queries with `changes` whose results topic is complete (`GroupState.complete`)."""
    numbers: list[int] = json.loads(saved.complete) if saved.complete is not None else []
    return numbers


def retention_floors(group: Group) -> dict[str, int]:
    """Return a time in ms for each stream IRI. The group's windows still need the stream's tuples after this time."""
    floors: dict[str, int] = {}
    for cohort in group.cohorts:
        for window in cohort.windows:
            closed = window.stream.closed_ms
            if closed is not None:
                start = held_from(window, cohort, closed)
                floors[window.stream.iri] = min(floors.get(window.stream.iri, start), start)
    return floors


def restore_counted(cohort: Cohort, saved: GroupState) -> None:
    """Restore the count windows of a cohort from the saved progress of its group. No effect if the cohort has time
    windows.
    """
    trigger = cohort.trigger
    if not isinstance(trigger, CountTrigger):
        return
    state = json.loads(saved.counted).get(_key(cohort)) if saved.counted is not None else None
    if state is not None:
        trigger.restore(state)


def _key(cohort: Cohort) -> str:
    return str(cohort.point if cohort.after is None else [cohort.point, cohort.after])


def catch_up_counted(cohort: Cohort) -> None:
    """If a cohort has count windows, process the batches that closed before the cohort was restored."""
    if isinstance(cohort.trigger, CountTrigger):
        for stream in cohort.group.streams:
            if stream.closed_ms is not None:
                cohort.trigger.closed(stream)


def restore_predecessors(
    cohorts: Iterable[Cohort], saved: GroupState, dictionary: native.Dictionary
) -> RestoredAnswers | None:
    """Restore the answers of the cohorts' members at the last committed instant, and return the restored answers. No
    effect unless `saved` is the state with which the bucket was opened: queries that join later have no earlier
    answers.
    """
    if saved.earlier or not saved.answers:
        return None
    answers = RestoredAnswers(saved, dictionary)
    for cohort in cohorts:
        numbers = {member.name: number for number, member in enumerate(cohort, 1)}
        cohort.predecessor = AnswerVersion(Membership(cohort), answers.rows_of(numbers))
    return answers
