"""The list of a query set's members, in pages."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.answers.arrow_terms import term_column
from penstock.engine.answers.record_lines import term_json
from penstock.engine.sets.cells import key_column, key_ids, shown
from penstock.engine.sets.set_members import MemberColumns, joined
from penstock.errors import ConflictError, DataError
from penstock.rdf.terms import IRI, LITERAL, XSD_BOOLEAN, XSD_INTEGER

if TYPE_CHECKING:
    from penstock.core._native import Ids, Lease
    from penstock.engine.sets.set_member import SetMember

MAX_LISTED = 10_000
"""Maximum number of members in a page."""
LISTED = 100
"""Default value of `PageRequest.limit`."""
_INTEGER = re.compile("0|-?[1-9][0-9]*")
_INT64_DIGITS = 19


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for members of a query set. `limit`: maximum number of members. `after`: the value of `MemberPage.next`
    in the previous page; None for the first page. `key`: the key of the only member to return (see
    `QuerySet.__contains__`); None stands for all members. DataError if `limit` is negative or exceeds MAX_LISTED.
    """

    limit: int = LISTED
    after: str | None = None
    key: object = None

    def __post_init__(self) -> None:
        if not 0 <= self.limit <= MAX_LISTED:
            raise DataError(f"limit must be between 0 and {MAX_LISTED} (MAX_LISTED), not {self.limit}")


@dataclass(frozen=True, slots=True)
class ListedMember:
    """A member of a query set. `key`: the key as text (see `key_text`). `row`: the values of the columns of the set, as
    JSON in a form that `QuerySet.add` accepts.
    """

    key: str
    row: dict[str, Any]


@dataclass(frozen=True, slots=True)
class MemberPage:
    """Members of a query set, in the order in which they were added. `count`: the number of all members of the set.
    `next`: the value of `PageRequest.after` for the following page; None if there are no further members.
    """

    count: int
    members: list[ListedMember]
    next: str | None


class MemberExcerpt:
    """The columns of some members. Create the object under the engine's lock, or in the engine's thread. Any thread can
    then call `page`, because the columns do not change, and a lease retains their terms.

    ConflictError if `asked.after` belongs to another incarnation of the set. In this case, the engine or the set was
    restarted after the previous page.
    """

    def __init__(self, member: SetMember, asked: PageRequest) -> None:
        self._member = member
        self._lease: Lease = member.dictionary.lease()
        self._count, self._types = len(member), list(member.key_types)
        after = _number_of(member, asked.after)
        if asked.key is None:
            columns = _following(member, after, asked.limit + 1)
            more = len(columns) > asked.limit
            self._columns = columns.take(np.arange(min(len(columns), asked.limit)))
        else:
            self._columns, more = _with_key(member, asked.key), False
        last = int(self._columns.numbers[-1]) if len(self._columns) else after
        self._next = f"{member.incarnation}.{last}" if more else None

    def page(self) -> MemberPage:
        """Return the members."""
        member, columns = self._member, self._columns
        keys = [
            key_column(ids, member.terms, kind).to_pylist() for ids, kind in zip(columns.keys, self._types, strict=True)
        ]
        cells = {
            name: _values(ids, member, name)
            for name, ids in zip(member.set_template.names, columns.parameters, strict=True)
        }
        cells |= {name: list(map(_json_value, values)) for name, values in zip(member.key, keys, strict=True)}
        members = [
            ListedMember(key_text(key), dict(zip(cells, row, strict=True)))
            for key, row in zip(zip(*keys, strict=True), zip(*cells.values(), strict=True), strict=True)
        ]
        return MemberPage(self._count, members, self._next)


def key_text(key: tuple[Any, ...]) -> str:
    """Return the key of a member as text. If the key is one text, the result is this text. Otherwise, the result is
    JSON. If the key has several columns, the JSON is an array.
    """
    if len(key) == 1 and isinstance(key[0], str):
        return key[0]
    values = [_json_value(value) for value in key]
    return json.dumps(values[0] if len(values) == 1 else values, ensure_ascii=False)


def _number_of(member: SetMember, after: str | None) -> int:
    """Return the number of the member after which a page begins. 0 stands for the first page."""
    if after is None:
        return 0
    incarnation, _, number = after.partition(".")
    if not number.isdecimal() or len(number) > 19:
        raise DataError(f"after is no `next` of a page: {after[:40]!r}")
    if incarnation != member.incarnation:
        raise ConflictError(
            "the numbers of the members have changed since the previous page: begin with the first page"
        )
    return int(number)


def _following(member: SetMember, after: int, most: int) -> MemberColumns:
    """Return the first `most` members whose numbers are greater than `after`."""
    parts = []
    for cohort in member.set_group.set_cohorts():
        columns = cohort.columns
        first = int(np.searchsorted(columns.numbers, np.uint64(after), side="right"))
        parts.append(columns.take(np.arange(first, min(first + most, len(columns)))))
    found = joined(parts) if parts else _none(member)
    return found.take(np.arange(min(len(found), most)))


def _with_key(member: SetMember, key: object) -> MemberColumns:
    kinds = tuple(map(member.text_kind, member.key))
    ids = key_ids(member.dictionary, member.key_types, kinds, key)
    if ids is not None:
        numbers = member.index.find([np.array([each], np.uint64) for each in ids])
        for cohort in member.set_group.set_cohorts():
            if numbers[0] and cohort.columns.have(numbers)[0]:
                return cohort.columns.take(cohort.columns.rows_of(numbers))
    return _none(member)


def _none(member: SetMember) -> MemberColumns:
    return MemberColumns.empty(len(member.set_template.names), len(member.key))


def _values(ids: Ids, member: SetMember, name: str) -> list[Any]:
    """Return the values of a parameter as JSON."""
    text_kind = member.text_kind(name)
    return [_value(term, text_kind) for term in term_column(ids, member.terms).to_pylist()]


def _value(term: dict[str, Any], text_kind: int) -> Any:
    """Return a term as a value of JSON. If plain text, a number or a boolean in a row denotes this term, the result is
    that value. Otherwise, the result is an object of SPARQL Results JSON. `text_kind`: the kind of term that plain text
    denotes.
    """
    found, value = term_json(term), term["value"]
    if found.keys() == {"type", "value"} and text_kind == (IRI if found["type"] == "uri" else LITERAL):
        return value
    if found.get("datatype") == XSD_INTEGER and len(value) < _INT64_DIGITS and _INTEGER.fullmatch(value):
        return int(value)
    if found.get("datatype") == XSD_BOOLEAN and value in ("true", "false"):
        return value == "true"
    return found


def _json_value(value: Any) -> Any:
    """Return the value of a key column as JSON."""
    return term_json(value) if isinstance(value, dict) else shown(value)
