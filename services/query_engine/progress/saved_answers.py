"""The previous answers of a group in the group's progress: a base, and the changes since the base (ADR 108).

Answers are saved as terms, because some term ids are valid only in one process.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.answer_versions import AnswerVersion, difference
from penstock.engine.answers.rows import Changes, Rows
from penstock.rdf.terms import BLANK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from penstock.core._native import Ids, TermTuple
    from penstock.engine.standing.groups import Cohort
    from penstock.replication.progress_log import GroupState

MAX_PIECES = 1_000
"""Maximum number of pieces. This number limits the records that an engine reads, and the deletions in a transaction."""

FEW_ROWS = 256
"""Changes of at most this number of rows cause no new base, even if the answers are smaller."""


class _Saved(NamedTuple):
    """What the progress contains: the version of each cohort's answer. `changed`: number of rows of the changes since
    the base. `pieces`: number of pieces.
    """

    versions: dict[Cohort, AnswerVersion]
    changed: int = 0
    pieces: int = 0


class SavedAnswers:
    """The answers of a group, as the last committed progress contains them. Each commit adds the changes since the
    previous commit, or replaces everything by a new base. A commit writes a base in three cases: nothing is saved yet,
    cohorts or members have changed, or the changes since the last base would have more rows than the answers.

    `names(cohort, numbers)` returns the names of members by number. The garbage collection of terms retains the terms
    of the saved answers (`Cohort.saved`), because the next changes contain the terms of removed rows.
    """

    def __init__(self, dictionary: native.Dictionary, names: Callable[[Cohort, Ids], list[str]]) -> None:
        self._decode = native.LocalTerms(dictionary).decode
        self._names = names
        self._saved = self._next = _Saved({})

    def resume(self, restored: RestoredAnswers, cohorts: Iterable[Cohort]) -> None:
        """Continue the progress from which the answers of these cohorts were restored. No effect if the progress
        contains a member that no longer exists.
        """
        if restored.unclaimed:
            return
        versions = {}
        for cohort in cohorts:
            if (before := cohort.predecessor) is not None:
                version = AnswerVersion(cohort.members, before.renumbered(cohort.members), leases=before.leases)
                cohort.predecessor = versions[cohort] = version
        self._next = _Saved(versions, restored.changed, restored.pieces)
        self.committed()

    def save(self, cohorts: Iterable[Cohort]) -> tuple[int, tuple[str, ...]]:
        """Return the number of pieces that the progress retains, and the pieces to write after these, as JSON texts.
        Call `committed` after the commit. Otherwise, the next call of `save` returns the changes since the last commit
        again.
        """
        now = {cohort: cohort.predecessor for cohort in cohorts if cohort.predecessor is not None}
        changes = self._changes(now)
        earlier = self._saved.pieces
        if changes is not None:
            changed = self._saved.changed + sum(map(len, changes.values()))
            if changed == self._saved.changed:
                self._next = self._saved._replace(versions=now)
                return earlier, ()
            rows = sum(version.row_count for version in now.values())
            if earlier < MAX_PIECES and changed <= max(rows, FEW_ROWS):
                self._next = _Saved(now, changed, earlier + 1)
                added = [self._part(cohort, change.added) for cohort, change in changes.items()]
                removed = [self._part(cohort, change.removed) for cohort, change in changes.items()]
                return earlier, (_piece(added, removed),)
        self._next = _Saved(now, 0, 1 if now else 0)
        base = [self._part(cohort, version.renumbered(cohort.members)) for cohort, version in now.items()]
        return 0, (_piece(base, []),) if now else ()

    def _changes(self, now: Mapping[Cohort, AnswerVersion]) -> dict[Cohort, Changes] | None:
        """Return the changes of each cohort's answer since the last commit. None if cohorts or members have changed."""
        before = self._saved.versions
        same = now.keys() == before.keys() and all(
            before[cohort].members is version.members is cohort.members for cohort, version in now.items()
        )
        if not same or not self._saved.pieces:
            return None
        return {cohort: version.changes_since(before[cohort]) for cohort, version in now.items()}

    def _part(self, cohort: Cohort, rows: Rows) -> dict[str, Any]:
        return {"members": self._names(cohort, rows.member), "columns": [self._decode(c) for c in rows.columns]}

    def committed(self) -> None:
        """Record that the pieces of the last call of `save` are committed."""
        self._saved = self._next
        for cohort, version in self._saved.versions.items():
            if cohort.saved is not version:
                version.track()
                cohort.saved = version


def _piece(added: list[dict[str, Any]], removed: list[dict[str, Any]]) -> str:
    return json.dumps({"added": added, "removed": removed}, ensure_ascii=False)


class RestoredAnswers:
    """The answers in the committed progress of a group. `saved` must have answers. `changed`: number of rows of the
    changes since the base. `unclaimed`: names of members whose rows `rows_of` has not returned.
    """

    def __init__(self, saved: GroupState, dictionary: native.Dictionary) -> None:
        pieces = [json.loads(text) for text in saved.answers]
        self._added, self._removed = (
            _Rows.of([part for piece in pieces for part in piece[side]], dictionary) for side in ("added", "removed")
        )
        self._decoder = native.LocalTerms(dictionary)
        self.pieces = len(pieces)
        base = sum(len(part["members"]) for part in pieces[0]["added"])
        self.changed = len(self._added.members) - base + len(self._removed.members)
        self.unclaimed = {*self._added.members, *self._removed.members}

    def rows_of(self, numbers: Mapping[str, int]) -> Rows:
        """Return the rows of the members in `numbers`, which gives the number of each member by name."""
        self.unclaimed -= numbers.keys()
        rows = self._added.rows_of(numbers, self._decoder)
        rows = difference(rows, self._removed.rows_of(numbers, self._decoder))
        return rows.take(np.argsort(rows.member, kind="stable"))


class _Rows(NamedTuple):
    """Rows of all members. `members`: the name of each row's member."""

    members: list[str]
    columns: tuple[Ids, ...]

    @classmethod
    def of(cls, parts: list[dict[str, Any]], dictionary: native.Dictionary) -> _Rows:
        members = [name for part in parts for name in part["members"]]
        cells = zip(*(part["columns"] for part in parts), strict=True)
        columns = ([cell for column in same for cell in column] for same in cells)
        return cls(members, tuple(_ids_of(column, dictionary) for column in columns))

    def rows_of(self, numbers: Mapping[str, int], decoder: native.LocalTerms) -> Rows:
        here = np.array([numbers.get(name, 0) for name in self.members], np.uint64)
        present = here != 0
        return Rows(here[present], tuple(column[present] for column in self.columns), decoder)


def terms_of(saved: GroupState) -> Iterator[TermTuple]:
    """Yield the terms that `RestoredAnswers` needs. The caller fetches the global ids of these terms."""
    for text in saved.answers:
        piece = json.loads(text)
        for part in (*piece["added"], *piece["removed"]):
            for column in part["columns"]:
                yield from _tuples_of(column)


def _tuples_of(column: list[list[Any] | None]) -> list[TermTuple]:
    """Return the terms of a saved column, without its unbound cells."""
    return [(t[0], t[1], t[2], t[3]) for t in column if t is not None]


def _ids_of(column: list[list[Any] | None], dictionary: native.Dictionary) -> Ids:
    """Return the ids of a saved column; 0 for an unbound cell."""
    ids = np.zeros(len(column), np.uint64)
    terms = _tuples_of(column)
    own = np.array([_blank(t, dictionary) if t[0] == BLANK else dictionary.intern(*t) for t in terms], np.uint64)
    dictionary.keep(own)
    ids[[t is not None for t in column]] = own
    return ids


def _blank(term: TermTuple, dictionary: native.Dictionary) -> int:
    dictionary.reserve_blanks(int(term[1].removeprefix("b")) + 1)
    return dictionary.find(BLANK, term[1])
