"""The progress of a query set's group. This progress contains the progress of a query group (`bucket_progress`), and
the member records that have taken effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.sets.set_groups import SetCohort
from penstock.replication.progress_log import GroupState
from penstock.services.query_engine.progress.bucket_progress import retention_floors
from penstock.services.query_engine.progress.saved_answers import RestoredAnswers, SavedAnswers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.core import _native as native
    from penstock.engine.sets.set_member import SetMember
    from penstock.engine.standing.groups import Cohort
    from penstock.services.query_engine.sets.taken_records import TakenRecords


def set_answers_of(member: SetMember) -> SavedAnswers:
    """Return the `SavedAnswers` of a new query set. No answers are saved yet."""

    def names(cohort: Cohort, numbers: native.Ids) -> list[str]:
        assert isinstance(cohort, SetCohort)
        columns = cohort.columns
        return keys_of(member, columns.keys[0][columns.rows_of(numbers)])

    return SavedAnswers(member.dictionary, names)


def set_progress_of(
    number: int, member: SetMember, last_ms: int | None, taken: TakenRecords, answers: SavedAnswers
) -> GroupState:
    """Return the progress of group `number`, which was evaluated up to instant `last_ms` (None: not yet)."""
    group = member.set_group
    closed = {stream.iri: stream.closed_ms for stream in group.streams if stream.closed_ms is not None}
    earlier, pieces = answers.save(group.set_cohorts())
    return GroupState(
        number,
        last_ms,
        retention_floors(group) if len(member) else closed,  # new members begin at the end of the streams
        members=taken.as_json(),
        answers=pieces,
        earlier=earlier,
    )


def keys_of(member: SetMember, ids: native.Ids) -> list[str]:
    """Return the keys of members. `ids`: the term ids of the keys."""
    return [term[1] for term in member.terms.decode(ids) if term is not None]


def restore_answers(cohorts: Iterable[SetCohort], saved: GroupState, member: SetMember) -> RestoredAnswers | None:
    """Restore the answers of the cohorts' members at the last committed instant, and return the restored answers."""
    if not saved.answers:
        return None
    answers = RestoredAnswers(saved, member.dictionary)
    for cohort in cohorts:
        columns = cohort.columns
        numbers = dict(zip(keys_of(member, columns.keys[0]), columns.numbers.tolist(), strict=True))
        cohort.predecessor = AnswerVersion(cohort.members, answers.rows_of(numbers))
    return answers
