"""The previous answers of a group in its progress: the texts of any sequence of commits lead to the last answers."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.answers.membership import Membership
from penstock.engine.answers.rows import Changes, Rows
from penstock.replication.progress_log import GroupState
from penstock.services.query_engine.progress import saved_answers
from penstock.services.query_engine.progress.saved_answers import RestoredAnswers, SavedAnswers


class OneCohort:
    """A cohort with two members."""

    def __init__(self) -> None:
        self.members, self.predecessor, self.saved = Membership([None, None]), None, None


def names(_, numbers) -> list[str]:
    return [f"q{number}" for number in numbers.tolist()]


def rows(dictionary, values) -> Rows:
    """Return rows, with the values of the first member before those of the second one."""
    member = np.array([1 + value % 2 for value in values], np.uint64)
    terms = dictionary.intern_many([(1, f"urn:{value}", "", "") for value in values])
    return Rows(member, (np.array(terms, np.uint64), np.zeros(len(values), np.uint64)), None).take(
        np.argsort(member, kind="stable")
    )


def held(answers: RestoredAnswers, dictionary) -> Counter:
    found = answers.rows_of({"q1": 1, "q2": 2})
    assert (np.diff(found.member.astype(np.int64)) >= 0).all()
    assert not found.columns[1].any()
    terms = native.LocalTerms(dictionary).decode(found.columns[0])
    return Counter(zip(found.member.tolist(), (int(term[1].removeprefix("urn:")) for term in terms), strict=True))


def restored(pieces: list[str]) -> tuple[RestoredAnswers, native.Dictionary]:
    """Return the answers in another engine."""
    dictionary = native.Dictionary()
    return RestoredAnswers(GroupState(1, 5, {}, answers=tuple(pieces)), dictionary), dictionary


def committed(saved: SavedAnswers, cohort: OneCohort, pieces: list[str]) -> list[str]:
    """Return the pieces after a commit."""
    earlier, new = saved.save([cohort])
    assert earlier in (0, len(pieces))
    saved.committed()
    return [*pieces[:earlier], *new]


@pytest.mark.parametrize("few", [0, 30])
@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_commits_leads_to_the_last_answer(monkeypatch, few, seed):
    monkeypatch.setattr(saved_answers, "FEW_ROWS", few)
    monkeypatch.setattr(saved_answers, "MAX_PIECES", 20)
    rng, dictionary, cohort = random.Random(seed), native.Dictionary(), OneCohort()
    saved, pieces, values, lengths = SavedAnswers(dictionary, names), [], Counter(), []
    for step in range(150):
        added = Counter(rng.choices(range(60), k=rng.choice([0, 1, 5])))
        removed = Counter({value: 1 for value in values if rng.random() < 0.1})
        values = values + added - removed
        before = cohort.predecessor
        if before is None or rng.random() < 0.3:
            cohort.predecessor = AnswerVersion(cohort.members, rows(dictionary, list(values.elements())))
        else:
            change = Changes(rows(dictionary, list(added.elements())), rows(dictionary, list(removed.elements())))
            cohort.predecessor = before.followed_by(change, step)
        if rng.random() < 0.2:
            saved.save([cohort])  # and the transaction is rejected
            continue
        pieces = committed(saved, cohort, pieces)
        lengths.append(len(pieces))
        answers, other = restored(pieces)
        assert held(answers, other) == Counter({(1 + value % 2, value): n for value, n in values.items()})
        if rng.random() < 0.1:  # another engine goes on
            dictionary, cohort = other, OneCohort()
            cohort.predecessor = AnswerVersion(cohort.members, answers.rows_of({"q1": 1, "q2": 2}))
            saved = SavedAnswers(dictionary, names)
            saved.resume(answers, [cohort])
    assert max(lengths) <= 20
    assert lengths.count(1) > 2
    assert max(lengths) > 3


def test_an_unchanged_answer_is_not_written_again():
    dictionary, cohort = native.Dictionary(), OneCohort()
    saved = SavedAnswers(dictionary, names)
    assert saved.save([cohort]) == (0, ())
    cohort.predecessor = AnswerVersion(cohort.members, rows(dictionary, [1, 2]))
    pieces = committed(saved, cohort, [])
    cohort.predecessor = AnswerVersion(cohort.members, rows(dictionary, [1, 2]))
    assert saved.save([cohort]) == (1, ())
    saved.committed()
    assert cohort.saved is cohort.predecessor, "the terms of the version are retained"
    cohort.members = Membership([None, None])
    cohort.predecessor = AnswerVersion(cohort.members, rows(dictionary, [1, 2]))
    assert committed(saved, cohort, pieces) == pieces
    assert saved.save([cohort]) == (1, ()), "the base of other members is written once"


def test_the_answers_of_a_member_that_is_gone_are_not_continued():
    dictionary, cohort = native.Dictionary(), OneCohort()
    cohort.predecessor = AnswerVersion(cohort.members, rows(dictionary, [1, 2]))
    (piece,) = SavedAnswers(dictionary, names).save([cohort])[1]
    answers, other = restored([piece])
    later = OneCohort()
    later.predecessor = AnswerVersion(later.members, answers.rows_of({"q2": 2}))
    assert answers.unclaimed == {"q1"}
    saved = SavedAnswers(other, names)
    saved.resume(answers, [later])
    earlier, (piece,) = saved.save([later])
    assert earlier == 0
    assert '"q1"' not in piece
