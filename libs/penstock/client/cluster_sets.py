"""Query sets of a cluster, as objects of a client. Members are records of the parameters topic (docs/kafka.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.client.results import ClusterQuery
from penstock.ingest.outgoing_members import MemberRecords
from penstock.log import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_AT_ONCE = 10_000  # records


class ClusterQuerySet(ClusterQuery):
    """A query set of a cluster. The set delivers the evaluations of the members that report. The property `member` of
    an evaluation is the key of its member. `columns`: the names of the parameters, and of the other columns of `key`.
    `key`: the names of the columns that identify a member.
    """

    def __init__(
        self,
        *given: Any,
        topic: str,
        parameters: tuple[str, ...],
        key: tuple[str, ...],
        append: Callable[[Sequence[Record]], None],
    ) -> None:
        super().__init__(*given)
        self._append = append
        self._records = MemberRecords(topic, parameters, key or parameters)
        self.key, self.columns = self._records.key, self._records.columns

    def add(self, rows: Any) -> int:
        """Add members, or replace members with the same key. Returns the number of rows. `rows`: as for
        `penstock.QuerySet.add`.

        When the call returns, the records are durable. A record takes effect when the query engine of the set reads the
        record. A row that cannot be a member then becomes a dead letter, and the engine removes the member with the key
        of this row. DataError if a column or value is missing or invalid. The earlier rows are perhaps added already.
        """
        return self._write(self._records.added(rows))

    def remove(self, keys: Any) -> int:
        """Remove the members with these keys. `keys`: rows with the columns `key`. Unknown keys have no effect. Returns
        the number of rows.
        """
        return self._write(self._records.removed(keys))

    def _write(self, records: Iterator[Record]) -> int:
        count, part = 0, list[Record]()
        for record in records:
            part.append(record)
            count += 1
            if len(part) == _AT_ONCE:
                self._append(part)
                part = []
        if part:
            self._append(part)
        return count
