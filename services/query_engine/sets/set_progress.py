"""The progress of a query set's group. It contains the progress of a query group (`bucket_progress`), and the member
records that have taken effect.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.answers.rows import Rows
from penstock.replication.progress_log import GroupState
from penstock.services.query_engine.bucket_progress import ids_of, retention_floors, tuples_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from penstock.core._native import TermTuple
    from penstock.engine.sets.set_groups import SetCohort
    from penstock.engine.sets.set_member import SetMember
    from penstock.services.query_engine.sets.taken_records import TakenRecords


def set_progress_of(number: int, member: SetMember, last_ms: int | None, taken: TakenRecords) -> GroupState:
    """Return the progress of group `number`, which was evaluated up to instant `last_ms` (None: not yet)."""
    group = member.set_group
    closed = {stream.iri: stream.closed_ms for stream in group.streams if stream.closed_ms is not None}
    before = [_answers(cohort, member) for cohort in group.set_cohorts() if cohort.predecessor is not None]
    return GroupState(
        number,
        last_ms,
        retention_floors(group) if len(member) else closed,  # new members begin at the end of the streams
        predecessor=json.dumps(before, ensure_ascii=False) if before else None,
        members=taken.as_json(),
    )


def keys_of(member: SetMember, ids: native.Ids) -> list[str]:
    """Return the keys of members. `ids`: the term ids of the keys."""
    return [term[1] for term in member.terms.decode(ids) if term is not None]


def _answers(cohort: SetCohort, member: SetMember) -> dict[str, Any]:
    assert cohort.predecessor is not None
    rows = cohort.predecessor.renumbered(cohort.members).published()
    decode = native.LocalTerms(member.dictionary).decode
    columns = cohort.columns
    ids = columns.keys[0][columns.rows_of(rows.member)]
    return {"members": keys_of(member, ids), "columns": [decode(column) for column in rows.columns]}


def restore_answers(cohorts: Iterable[SetCohort], saved: GroupState, member: SetMember) -> None:
    """Restore the answers of the cohorts' members at the last committed instant."""
    parts = json.loads(saved.predecessor) if saved.predecessor is not None else []
    for cohort in cohorts if parts else ():
        columns = cohort.columns
        numbers = dict(zip(keys_of(member, columns.keys[0]), columns.numbers.tolist(), strict=True))
        found = [_rows(part, numbers, member) for part in parts]
        every = np.concatenate([rows.member for rows in found])
        values = zip(*(rows.columns for rows in found), strict=True)
        rows = Rows(every, tuple(map(np.concatenate, values)), native.LocalTerms(member.dictionary))
        cohort.predecessor = AnswerVersion(cohort.members, rows.take(np.argsort(every, kind="stable")))


def _rows(part: dict[str, Any], numbers: dict[str, int], member: SetMember) -> Rows:
    here = np.array([numbers.get(key, 0) for key in part["members"]], np.uint64)
    present = here != 0
    columns = tuple(ids_of(column, member.dictionary)[present] for column in part["columns"])
    return Rows(here[present], columns, None)


def answer_terms(saved: GroupState) -> Iterator[TermTuple]:
    """Yield the terms that `restore_answers` needs, so that their global ids can be fetched."""
    for part in json.loads(saved.predecessor) if saved.predecessor is not None else ():
        for column in part["columns"]:
            yield from tuples_of(column)
