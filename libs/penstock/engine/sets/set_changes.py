"""Addition of members to query sets, and removal of members."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.rejected_events import DeadLetter
from penstock.engine.sets.cells import Cells, fits, read_cells, shown, type_of
from penstock.engine.sets.set_member import sets_of
from penstock.engine.sets.set_members import MemberColumns
from penstock.errors import LimitError
from penstock.query.set_templates import Use
from penstock.rdf.terms import IRI

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.engine.runtime import Runtime
    from penstock.engine.sets.set_member import SetMember

CHUNK_ROWS, CHUNK_BYTES = 65_536, 32 << 20
"""Limits of one change: the maximum number of rows of a table, and the maximum size of these rows in bytes. A single
row can be larger.
"""


@dataclass(frozen=True, slots=True)
class MembersReport:
    """The outcome of an addition of a table's rows. `added`: the number of rows with a new key. `replaced`: the number
    of rows with a known key and other parameters. `unchanged`: the number of rows without an effect. Such a row was a
    member already, or a later row of the same chunk has the same key (see `QuerySet.add`). `rejected`: the number of
    rows that cannot be members. The rejected rows are in the dead-letter output.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    rejected: int = 0

    def __add__(self, other: MembersReport) -> MembersReport:
        """Return the sums of two reports."""
        return MembersReport(
            self.added + other.added,
            self.replaced + other.replaced,
            self.unchanged + other.unchanged,
            self.rejected + other.rejected,
        )


def chunks(table: pa.Table) -> Iterator[pa.Table]:
    """Yield the table in parts of at most CHUNK_ROWS rows and CHUNK_BYTES bytes."""
    rows = table.num_rows
    if rows > 1 and (rows > CHUNK_ROWS or table.nbytes > CHUNK_BYTES):
        size = min(CHUNK_ROWS, (rows + 1) // 2)
        for first in range(0, rows, size):
            yield from chunks(table.slice(first, size))
    elif rows:
        yield table


def add(runtime: Runtime, member: SetMember, table: pa.Table) -> MembersReport:
    """Add rows to the query set `member`. The rows are in a table with the columns `member.columns`. LimitError if
    there would be more members than `max_members`. In this case, no row is added.
    """
    rows = MemberRows.read(member, table, runtime.core.limits.max_member_bytes)
    rows.find(member, runtime.core.dictionary)
    _check_members(runtime, int(np.count_nonzero(rows.fresh & (rows.known == 0))))
    _put_letters(runtime, member, table, rows.faults)
    replaced, _ = put(runtime, member, rows)
    count = int(np.count_nonzero(rows.fresh))
    return MembersReport(count - replaced, replaced, len(rows.fresh) - count, len(rows.faults))


@dataclass(slots=True)
class MemberRows:
    """The rows of a table of members. `faults` contains, by row, the reason why the row cannot be a member. `good` is a
    mask of the rows without a fault.

    The other attributes have an element for each good row. The method `find` sets these attributes. `keys` and
    `parameters` are columns of ids. `known` contains the number of the member with the row's key, or 0. `fresh` says
    whether the row changes the set. A row changes the set if it is the last row with its key, and if no member has this
    key and these parameters.
    """

    cells: dict[str, Cells]
    faults: dict[int, str]
    good: NDArray[np.bool_]
    keys: tuple[Ids, ...] = ()
    parameters: tuple[Ids, ...] = ()
    known: Ids = field(default_factory=lambda: np.empty(0, np.uint64))
    fresh: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))

    @classmethod
    def read(cls, member: SetMember, table: pa.Table, max_bytes: int) -> MemberRows:
        """Read a table with the columns `member.columns`. `max_bytes` is the maximum size of a value."""
        cells = {name: read_cells(table.column(name), member.text_kind(name), max_bytes) for name in member.columns}
        faults = _faults(member, cells)
        good = np.ones(table.num_rows, np.bool_)
        good[list(faults)] = False
        return cls(cells, faults, good)

    def find(self, member: SetMember, dictionary: native.Dictionary) -> None:
        """Find the ids of the values, and the members with these keys."""
        ids = {name: each.intern(dictionary, self.good) for name, each in self.cells.items()}
        self.keys = tuple(ids[name] for name in member.key)
        self.parameters = tuple(ids[name] for name in member.set_template.names)
        self.known = member.index.find(self.keys)
        self.fresh = _last_of_each_key(self.keys) & ~member.unchanged(self.known, self.parameters)

    def columns(self, member: SetMember) -> MemberColumns:
        """Return the fresh rows as members with new numbers. If these are the first members, the call sets the types of
        the set's key columns.
        """
        for i, name in enumerate(member.key):
            member.key_types[i] = member.key_types[i] or type_of(self.cells[name])
        numbers = np.zeros(len(self.fresh), np.uint64)
        numbers[self.fresh] = member.numbers(int(np.count_nonzero(self.fresh)))
        return MemberColumns(numbers, self.parameters, self.keys).take(self.fresh)


def put(runtime: Runtime, member: SetMember, rows: MemberRows, not_before: int | None = None) -> tuple[int, int | None]:
    """Add a member for each fresh row. Returns the number of members that the new members replace, and the registration
    point of the new members. `not_before`: see `Registry.extend`.
    """
    if not rows.fresh.any():
        return 0, None
    columns = rows.columns(member)
    before = member.index.put(columns.keys, columns.numbers)
    replaced = before[before != 0]
    runtime.registry.shrink(member, replaced)
    return len(replaced), runtime.registry.extend(member, columns, not_before)


def remove(runtime: Runtime, member: SetMember, table: pa.Table) -> int:
    """Remove members by their keys. The keys are the rows of a table with the columns `member.key`. A key without a
    member has no effect. Returns the number of removed members.
    """
    cells = {name: read_cells(table.column(name), member.text_kind(name), 1 << 30) for name in member.key}
    usable = np.ones(table.num_rows, np.bool_)
    for i, name in enumerate(member.key):
        usable[list(cells[name].faults)] = False
        usable &= fits(cells[name], member.key_types[i])
    removed = member.index.remove([cells[name].intern(runtime.core.dictionary, usable) for name in member.key])
    removed = removed[removed != 0]
    runtime.registry.shrink(member, removed)
    return len(removed)


def _faults(member: SetMember, cells: dict[str, Cells]) -> dict[int, str]:
    """Return, by row number, the reasons why rows cannot be members."""
    faults: dict[int, str] = {}
    for name, each in cells.items():
        for row, fault in each.faults.items():
            faults.setdefault(row, f"{name} {fault}")
    template = member.set_template
    for name, use in zip(template.names, template.uses, strict=True):
        for row in np.flatnonzero(cells[name].kinds != IRI).tolist() if use is Use.SUBJECT else ():
            faults.setdefault(row, f"{name} is a literal; the text uses ?{name} as a subject, which is an IRI")
    for name, kind in zip(member.key, member.key_types, strict=True):
        for row in np.flatnonzero(~fits(cells[name], kind)).tolist():
            faults.setdefault(row, f"{name} has not the type of the other keys, which is {kind}")
    return faults


def _last_of_each_key(keys: tuple[Ids, ...]) -> NDArray[np.bool_]:
    """Return a mask of the last row of each key."""
    last = np.ones(len(keys[0]), np.bool_)
    earlier = native.KeyIndex(len(keys)).put(keys, np.arange(1, len(last) + 1, dtype=np.uint64))
    last[earlier[earlier != 0].astype(np.intp) - 1] = False
    return last


def _check_members(runtime: Runtime, more: int) -> None:
    most = runtime.core.limits.max_members
    held = sum(map(len, sets_of(list(runtime.registry.members.values()))))
    if held + more > most:
        raise LimitError(
            f"the query sets have {held} members, and {more} more would exceed max_members ({most})",
            limit="max_members",
        )


def _put_letters(runtime: Runtime, member: SetMember, table: pa.Table, faults: dict[int, str]) -> None:
    for row, reason in sorted(faults.items()):
        values = {name: shown(table.column(name)[row].as_py()) for name in table.column_names}
        data = json.dumps(values, ensure_ascii=False).encode()
        runtime.dead_letters.put(DeadLetter(member.name, None, f"not a member of {member.name}: {reason}", data))
