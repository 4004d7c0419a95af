"""Adds members to query sets and removes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
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
"""Maximum number of rows of a table that form one change, and their maximum size in bytes. A single row may be
larger.
"""


@dataclass(frozen=True, slots=True)
class MembersReport:
    """What has become of the rows of a table. `added`: rows with a new key. `replaced`: rows with a known key and other
    parameters. `unchanged`: rows that were members already, and rows that a later row of the same chunk replaces (see
    `QuerySet.add`). `rejected`: rows that cannot be members; they are in the dead-letter output.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    rejected: int = 0

    def __add__(self, other: MembersReport) -> MembersReport:
        """Return the sums."""
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
    """Add the rows of a table with the columns `member.columns` to a query set. LimitError, without effect, if there
    would be more members than `max_members`.
    """
    core = runtime.core
    cells = {
        name: read_cells(table.column(name), member.text_kind(name), core.limits.max_member_bytes)
        for name in member.columns
    }
    faults = _faults(member, cells)
    good = np.ones(table.num_rows, np.bool_)
    good[list(faults)] = False
    ids = {name: each.intern(core.dictionary, good) for name, each in cells.items()}
    keys = tuple(ids[name] for name in member.key)
    last = _last_of_each_key(keys)
    known = member.index.find(keys)
    parameters = tuple(ids[name] for name in member.set_template.names)
    fresh = last & ~member.unchanged(known, parameters)
    _check_members(runtime, int(np.count_nonzero(fresh & (known == 0))))
    _put_letters(runtime, member, table, faults)
    if not fresh.any():
        return MembersReport(unchanged=len(fresh), rejected=len(faults))
    for i, name in enumerate(member.key):
        member.key_types[i] = member.key_types[i] or type_of(cells[name])
    numbers = np.zeros(len(fresh), np.uint64)
    numbers[fresh] = member.numbers(int(np.count_nonzero(fresh)))
    columns = MemberColumns(numbers, parameters, keys).take(fresh)
    before = member.index.put(columns.keys, columns.numbers)
    replaced = before[before != 0]
    runtime.registry.shrink(member, replaced)
    runtime.registry.extend(member, columns)
    count = len(columns)
    return MembersReport(count - len(replaced), len(replaced), len(fresh) - count, len(faults))


def remove(runtime: Runtime, member: SetMember, table: pa.Table) -> int:
    """Remove the members whose keys are the rows of a table with the columns `member.key`. Keys of no member have no
    effect. Returns the number of removed members.
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
    """Return why rows cannot be members, by row number."""
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
    """Return for each row whether no later row has the same key."""
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
