"""The progress of a query group: the state from which another engine can continue the group. Each transaction contains
results together with the progress.

The progress consists of the last instant, the count windows, the previous answers that ISTREAM and DSTREAM need, and an
event time for each stream. The group no longer needs the tuples up to and including this event time. The progress does
not contain time windows, because an engine restores time windows from slices. Answers are saved as terms, because some
term ids are valid only in one process.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.answers.membership import Membership
from penstock.engine.answers.rows import Rows
from penstock.engine.windows.slice_release import held_from
from penstock.engine.windows.trigger import CountTrigger
from penstock.rdf.terms import BLANK
from penstock.replication.progress_log import GroupState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from penstock.core._native import Ids, TermTuple
    from penstock.engine.standing.groups import Cohort, Group


def progress_of(
    number: int, group: Group, last_ms: int | None, dictionary: native.Dictionary, complete: Collection[int] = ()
) -> GroupState:
    """Return the progress of group `number`, which was evaluated up to instant `last_ms` (None: not yet). `complete`:
    see `GroupState.complete`; the argument can also contain queries of other groups.
    """
    counted = {_key(c): c.trigger.save() for c in group.cohorts if isinstance(c.trigger, CountTrigger)}
    before = [_answers(c, dictionary) for c in group.cohorts if c.predecessor is not None]
    return GroupState(
        number,
        last_ms,
        retention_floors(group),
        json.dumps(counted) if counted else None,
        json.dumps(before, ensure_ascii=False) if before else None,
        complete=json.dumps(numbers) if (numbers := [n for n in map(int, group.names()) if n in complete]) else None,
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


def _answers(cohort: Cohort, dictionary: native.Dictionary) -> dict[str, Any]:
    assert cohort.predecessor is not None
    rows = cohort.predecessor.renumbered(cohort.members).published()
    decode = native.LocalTerms(dictionary).decode
    names = [member.name for member in cohort]
    return {"members": [names[n - 1] for n in rows.member.tolist()], "columns": [decode(c) for c in rows.columns]}


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


def restore_predecessors(cohorts: Iterable[Cohort], saved: GroupState, dictionary: native.Dictionary) -> None:
    """Restore the answers of the cohorts' members at the last committed instant."""
    if saved.predecessor is None:
        return
    parts = json.loads(saved.predecessor)
    for cohort in cohorts:
        numbers = {member.name: number for number, member in enumerate(cohort, 1)}
        found = [_rows(part, numbers, dictionary) for part in parts]
        member = np.concatenate([rows.member for rows in found])
        columns = zip(*(rows.columns for rows in found), strict=True)
        every = Rows(member, tuple(map(np.concatenate, columns)), native.LocalTerms(dictionary))
        cohort.predecessor = AnswerVersion(Membership(cohort), every.take(np.argsort(member, kind="stable")))


def terms_of(saved: GroupState) -> Iterator[TermTuple]:
    """Yield the terms that `restore_predecessors` needs, so that their global ids can be fetched."""
    for part in json.loads(saved.predecessor) if saved.predecessor is not None else ():
        for column in part["columns"]:
            yield from tuples_of(column)


def tuples_of(column: list[list[Any] | None]) -> list[TermTuple]:
    """Return the terms of a saved column, without its unbound cells."""
    return [(t[0], t[1], t[2], t[3]) for t in column if t is not None]


def _rows(part: dict[str, Any], numbers: Mapping[str, int], dictionary: native.Dictionary) -> Rows:
    """Return the saved rows of the members in `numbers`, which gives the number of each member by name."""
    here = np.array([numbers.get(name, 0) for name in part["members"]], np.uint64)
    present = here != 0
    columns = tuple(ids_of(column, dictionary)[present] for column in part["columns"])
    return Rows(here[present], columns, None)


def ids_of(column: list[list[Any] | None], dictionary: native.Dictionary) -> Ids:
    """Return the ids of a saved column; 0 for an unbound cell."""
    ids = np.zeros(len(column), np.uint64)
    terms = tuples_of(column)
    own = np.array([_blank(t, dictionary) if t[0] == BLANK else dictionary.intern(*t) for t in terms], np.uint64)
    dictionary.keep(own)
    ids[[t is not None for t in column]] = own
    return ids


def _blank(term: TermTuple, dictionary: native.Dictionary) -> int:
    dictionary.reserve_blanks(int(term[1].removeprefix("b")) + 1)
    return dictionary.find(BLANK, term[1])
