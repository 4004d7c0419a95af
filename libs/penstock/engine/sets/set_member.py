"""A query set, which is one member for the schedule and for checkpoints. Each result of this member is a step. A step
contains the answers of all members of the set at one instant.
"""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.core import _native as native
from penstock.engine.sets.earlier_texts import EarlierTexts
from penstock.engine.sets.set_groups import SetCohort, SetOwner
from penstock.engine.sets.step_queue import StepQueue
from penstock.engine.sets.steps import TRIPLE
from penstock.errors import DataError
from penstock.query.algebra.tree import Iri, Literal
from penstock.query.ir import Form, RelationToStream
from penstock.query.resolve import error_at
from penstock.query.set_templates import Use
from penstock.rdf import terms as terms_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids
    from penstock.engine.answers.delivery import Listeners
    from penstock.engine.sets.set_groups import SetGroup
    from penstock.engine.sets.set_members import MemberColumns
    from penstock.engine.standing.groups import Cohort, Member
    from penstock.query.ir import ContinuousQuery
    from penstock.query.set_templates import SetTemplate
    from penstock.query.templates import Constant


REPORTS = ("every", "nonempty", "change")
"""Which members of a set report at an instant: all members, the members with rows, or the members with a changed
answer.
"""


RECORD_KEY = "key of the record"
"""The key column of a cluster's query sets. The column contains the keys of the records in the parameters topic. The
name of this column is not a valid variable name. No parameter and no column of an answer can therefore have this name.
"""


class SetMember(SetOwner):
    """A query set. `key`: the names of the columns that identify a member. `key_types`: the types of these columns (see
    `Cells.type`), or "" before the first member is added. `index`: maps the key of a member to the member's number.
    `constants`: the constants of one member, for estimates.
    """

    def __init__(
        self,
        name: str,
        base: str | None,
        ir: ContinuousQuery,
        group: SetGroup,
        key: tuple[str, ...],
        listeners: Listeners,
        dictionary: native.Dictionary,
    ) -> None:
        super().__init__(name, base, ir, group, (), listeners)
        self.ir = ir
        self.constants: tuple[Constant, ...] = ()
        self.set_group = group
        self.key = key
        self.key_types = [""] * len(key)
        self.index = native.KeyIndex(len(key))
        self.next_number = 1
        self.dictionary = dictionary
        self.terms = native.LocalTerms(dictionary)
        self.texts = EarlierTexts()
        self.incarnation = token_hex(4)  # after a restart, members can have other numbers
        self.result_queue: StepQueue = StepQueue(self, listeners)

    def __len__(self) -> int:
        return sum(len(cohort) for cohort in self.set_group.cohorts)

    def __bool__(self) -> bool:
        return True

    @property
    def set_template(self) -> SetTemplate:
        """The template of the set."""
        return self.set_group.set_template

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that a table of members must have: first the parameters, then the key columns that
        are not parameters.
        """
        return tuple(dict.fromkeys((*self.set_template.names, *self.key)))

    @property
    def report(self) -> str:
        """The report mode, one of REPORTS. The mode says which members report at an instant."""
        query = self.set_group.query
        return "change" if query.changes else "nonempty" if query.report_nonempty else "every"

    def text_kind(self, name: str) -> int:
        """Return the kind of term (IRI or LITERAL) that text in a column denotes."""
        uses = dict(zip(self.set_template.names, self.set_template.uses, strict=True))
        return terms_of.LITERAL if uses.get(name, Use.VALUE) is Use.VALUE else terms_of.IRI

    @property
    def cohort(self) -> Cohort | None:
        """The cohort that has the most members, or None if the set has no members."""
        return max(self.set_group.cohorts, key=len, default=None)

    @cohort.setter
    def cohort(self, value: Cohort | None) -> None:
        assert value is None

    def numbers(self, count: int) -> Ids:
        """Return new numbers for `count` members."""
        first, self.next_number = self.next_number, self.next_number + count
        return np.arange(first, self.next_number, dtype=np.uint64)

    def unchanged(self, numbers: Ids, parameters: tuple[Ids, ...]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return a mask of the unchanged rows. `numbers` contains a member number for each row. A row is unchanged if
        this member has the parameters of the row. The number 0 stands for no member. The mask is False where the number
        is 0.
        """
        same = np.zeros(len(numbers), np.bool_)
        if not numbers.any():
            return same
        for cohort in self.set_group.set_cohorts():
            found, before = cohort.parameters_of(numbers)
            equal = np.ones(len(found), np.bool_)
            for old, new in zip(before, parameters, strict=True):
                equal &= old == new[found]
            same[found] = equal
        same &= numbers != 0
        return same

    def sample(self) -> tuple[Constant, ...]:
        """Return the constants of a member, in the order of the template's parameters. The result is () if the set has
        no members.
        """
        for cohort in self.set_group.set_cohorts():
            if len(cohort):
                return self.constants_of(cohort.columns)
        return ()

    def constants_of(self, columns: MemberColumns) -> tuple[Constant, ...]:
        """Return the constants of the first member in `columns`, in the order of the template's parameters."""
        first = np.array([column[0] for column in columns.parameters], np.uint64)
        found = self.terms.decode(first)
        made = [
            Iri(term[1]) if term[0] == terms_of.IRI else Literal(term[1], term[2], term[3])
            for term in found
            if term is not None
        ]
        return tuple(made[i] for i in self.set_template.occurrences)

    def restore(self, columns: MemberColumns) -> None:
        """Add members of a checkpoint to the index."""
        self.index.put(columns.keys, columns.numbers)
        if not self.constants and len(columns):
            self.constants = self.constants_of(columns)


def with_report(query: ContinuousQuery, report: str) -> ContinuousQuery:
    """Return the query of a set with the report mode `report`, one of REPORTS. QueryError if `report` is "change" and
    the query has ISTREAM or DSTREAM.
    """
    if report == "change" and query.r2s is not RelationToStream.RSTREAM:
        message = f"a report of changes and {query.r2s.value} exclude each other: REGISTER QUERY reports both"
        raise error_at(query, query.at, message)
    return replace(query, report_nonempty=report != "every", changes=report == "change")


def checked_key(template: SetTemplate, key: Sequence[str] | str | None) -> tuple[str, ...]:
    """Return the names of the key columns. If `key` is None, these are the names of the parameters. DataError if the
    key is empty, if the key contains a name twice, or if a column of the answer has a name of the key.
    """
    names = template.names if key is None else (key,) if isinstance(key, str) else tuple(key)
    if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise DataError(f"a key is the name of a column, or several different names, not {key!r}")
    query = template.template.query
    answer = {variable.name for variable in query.variables}
    if query.form in (Form.CONSTRUCT, Form.DESCRIBE):
        answer = set(TRIPLE)
    for name in names:
        if name in answer:
            raise DataError(f"the answer has a column {name}, too: give the column of the key another name")
    return names


def sets_of(members: list[Member]) -> list[SetMember]:
    """Return the members that are query sets."""
    return [member for member in members if isinstance(member, SetMember)]


def cohort_columns(cohort: Cohort) -> MemberColumns | None:
    """Return the members of a query set's cohort, or None for other cohorts."""
    return cohort.columns if isinstance(cohort, SetCohort) else None
