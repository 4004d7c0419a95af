"""`QuerySet`: the object with which users change, poll, subscribe to, iterate over and stop a query set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.answers.delivery import as_they_occur
from penstock.engine.sets.cells import key_ids
from penstock.engine.sets.member_excerpt import LISTED, MemberExcerpt, PageRequest
from penstock.engine.sets.tables import as_table
from penstock.engine.standing.query_status import QueryStatus, status_of
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager
    from weakref import WeakMethod

    import pyarrow as pa

    from penstock.engine.sets.member_excerpt import MemberPage
    from penstock.engine.sets.set_changes import MembersReport
    from penstock.engine.sets.set_member import SetMember
    from penstock.engine.sets.steps import Step
    from penstock.engine.standing.groups import Member
    from penstock.event_time.gaps import Gap


@dataclass(frozen=True, slots=True)
class SetOperations:
    """The operations of an engine that query sets call. The references to the engine's methods are weak, so they do not
    keep the engine alive. `lock` is the engine's lock.
    """

    add: WeakMethod[Callable[[SetMember, pa.Table], MembersReport]]
    remove: WeakMethod[Callable[[SetMember, pa.Table], int]]
    stop: WeakMethod[Callable[[Member], None]]
    lock: AbstractContextManager[Any]


class QuerySet:
    """A query set: one text with parameters, evaluated for each member of a table. The results of an instant are one
    `Step`. `len()` is the number of members.

    Any thread can call the methods. A reference to a set does not keep its engine alive.
    """

    def __init__(self, member: SetMember, operations: SetOperations) -> None:
        self._member = member
        self._operations = operations

    def __repr__(self) -> str:
        return f"<QuerySet {self.name}: {len(self)} members{' (stopped)' if self.stopped else ''}>"

    # ---- members
    def __len__(self) -> int:
        with self._operations.lock:
            return len(self._member)

    def __bool__(self) -> bool:
        """Return True, even if the set has no members."""
        return True

    def __contains__(self, key: object) -> bool:
        """Return whether there is a member with this key. `key` is a value, or a tuple if the key has several
        columns.
        """
        member = self._member
        with self._operations.lock:
            ids = key_ids(member.dictionary, member.key_types, tuple(map(member.text_kind, member.key)), key)
            return ids is not None and bool(member.index.find([np.array([each], np.uint64) for each in ids])[0])

    def add(self, rows: Any) -> MembersReport:
        """Add members. `rows` is an Arrow table or record batch, a pandas or polars frame, or an iterable of rows. Each
        row is a dict, or a tuple in the order of `columns`. Columns that are not in `columns` are ignored.

        If a row has the key of a member, there are two cases. If the parameters differ, the row replaces the member.
        Otherwise, the row has no effect.

        Text is a `str`, or a value of an Arrow column of strings. If the query uses the parameter as a vertex, text
        denotes an IRI. Otherwise, text denotes a string literal. Other terms are given as rdflib terms, or as an Arrow
        column of terms (see `Solutions.to_arrow`). A row that cannot be a member becomes a dead letter. The other rows
        are added.

        The table is added in chunks of several thousand rows. After a LimitError (`max_members`), the rows of the
        earlier chunks remain members. DataError if a column is missing or has an unsupported type.
        """
        table = as_table(rows, self.columns)
        if (add := self._operations.add()) is None:
            raise PenstockError("the engine is closed")
        return add(self._member, table)

    def remove(self, keys: Any) -> int:
        """Remove the members with these keys. `keys` contains rows with the columns of the key, in one of the forms
        that `add` accepts. Unknown keys have no effect. Returns the number of removed members.
        """
        table = as_table(keys, self.key)
        if (remove := self._operations.remove()) is None:
            raise PenstockError("the engine is closed")
        return remove(self._member, table)

    def list_members(self, limit: int = LISTED, after: str | None = None, key: object = None) -> MemberPage:
        """Return members with their keys and rows, at most `limit` of them, in the order in which they were added.
        `after`: the field `next` of the previous page. `key`: return only the member with this key (see `in`).

        A member that is added or replaced between two calls can be in a later page. DataError if `limit` exceeds
        MAX_LISTED. ConflictError if the engine was restarted since the previous page.
        """
        asked = PageRequest(limit, after, key)
        with self._operations.lock:
            found = MemberExcerpt(self._member, asked)
        return found.page()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that a table of members must have: first the parameters, then the key columns that
        are not parameters.
        """
        return self._member.columns

    @property
    def key(self) -> tuple[str, ...]:
        """The names of the columns that identify a member."""
        return self._member.key

    # ---- the set
    @property
    def name(self) -> str:
        """The name of the set, which is unique among the engine's queries and sets."""
        return self._member.name

    @property
    def text(self) -> str:
        """The text of the set."""
        return self._member.ir.text

    @property
    def base(self) -> str | None:
        """The base IRI that was given at the registration, or None."""
        return self._member.base

    @property
    def report(self) -> str:
        """Which members report at an instant: "every", "nonempty" or "change" (see `Step`)."""
        return self._member.report

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the text."""
        return self._member.ir.warnings

    @property
    def gaps(self) -> list[Gap]:
        """The ranges of instants that were skipped (see `Query.gaps`)."""
        return list(self._member.gaps)

    def status(self) -> QueryStatus:
        """Return the status of the set: the streams for which the set waits, and the input that would end the wait."""
        with self._operations.lock:
            return status_of(self._member)

    @property
    def stopped(self) -> bool:
        """Whether the set was stopped, either by `stop` or because the engine was closed."""
        return self._member.result_queue.ended

    def stop(self) -> None:
        """Stop the set, with all its members. Pending steps can still be polled."""
        if not self.stopped and (stop := self._operations.stop()) is not None:
            stop(self._member)

    # ---- results
    def poll(self, limit: int | None = None) -> list[Step]:
        """Remove and return pending steps, at most `limit` of them (None: all), in order of time."""
        with self._operations.lock:
            return self._member.result_queue.take(limit)

    def unpolled(self) -> int:
        """Return the number of pending steps."""
        with self._operations.lock:
            return len(self._member.result_queue)

    def subscribe(self, callback: Callable[[Step], object]) -> Callable[[], None]:
        """Call `callback` with every pending and future step (see `Query.subscribe`). This method returns a function
        that ends the subscription.
        """
        return self._member.result_queue.subscribe(callback)  # type: ignore[arg-type]

    async def __aiter__(self) -> AsyncIterator[Step]:
        """Yield each step when it occurs. The iteration ends when the set is stopped and all steps are consumed.

        PenstockError if the set has a subscriber, which receives the steps instead.
        """
        if self._member.result_queue.subscribed:
            raise PenstockError(f"the steps of {self.name} go to its subscriber: nothing is left to iterate over")
        async for step in as_they_occur(self._member.result_queue, self.poll):
            yield step
