"""The status topic: the state of queries, and the outcome of requests that users write into topics. The topic is
compacted; its values are JSON, for users.

| key | written by | value |
| --- | --- | --- |
| `query NAME NUMBER` | the engine of the query's bucket | registration point, null until known; gaps; error |
| `refused KIND NAME` | the coordinator | why the last request for NAME was refused |

If a request is refused because of an error in a query, the value contains the line and column of the error.

The status of a query is `failing`, with the error, while the query's results topic rejects answers. It is `refused`,
with the error, if the query cannot begin in the past, because tuples that it needs are released. Such a query is never
evaluated. Otherwise, the status is `standing`. The key contains the registration's number, because engines write
independently. An engine that lags can write the status of a stopped query after another engine has written the status
of a new query of the same name. A key is deleted when its value is obsolete.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import QueryError
from penstock.event_time.gaps import Gap
from penstock.log import Partition, Record
from penstock.log.view import CompactedView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.log import Log
    from penstock.log.topics import TopicNames
    from penstock.wire import QueryRegistration

MAX_REFUSED = 10_000
"""Maximum number of refusals in the topic. Beyond this number, the coordinator deletes the oldest refusals."""
MAX_MESSAGE = 4_096
"""Maximum characters of an error message."""
MAX_REPORTED_GAPS = 100
"""Maximum number of gaps in a query's status. Only the latest gaps are reported."""


class Standing(NamedTuple):
    """The status of a registered query. `point_ms`: the registration point P in ms, or None until one of the query's
    streams has progress.

    `gaps`: the latest `MAX_REPORTED_GAPS` gaps. `error`: the reason why the results topic rejects answers, or why the
    query is refused, or None. `refused`: whether the query is never evaluated.
    """

    number: int
    point_ms: int | None
    gaps: tuple[Gap, ...] = ()
    error: str | None = None
    refused: bool = False


def standing_record(
    names: TopicNames,
    record: QueryRegistration,
    point_ms: int | None,
    gaps: Sequence[Gap] = (),
    error: str | None = None,
    *,
    refused: bool = False,
) -> Record:
    """Return the status record of a query. `point_ms`, `gaps`, `error`, `refused`: as in `Standing`."""
    value: dict[str, Any] = {"status": "standing", "query": record.name, "number": record.number, "point": point_ms}
    if gaps:
        value["gaps"] = [asdict(gap) for gap in gaps[-MAX_REPORTED_GAPS:]]
    if error is not None:
        value |= {"status": "refused" if refused else "failing", "error": error[:MAX_MESSAGE]}
    return Record(names.status, json.dumps(value).encode(), _standing_key(record.name, record.number))


def stopped_record(names: TopicNames, name: str, number: int) -> Record:
    """Return the record that deletes the status of a query."""
    return Record(names.status, None, _standing_key(name, number))


def refused_record(names: TopicNames, kind: str, name: str, source: str, error: Exception) -> Record:
    """Return the record of a refused request. `source`: topic/partition/offset of the request."""
    document: dict[str, str | int] = {
        "status": "refused",
        kind: name,
        "source": source,
        "error": type(error).__name__,
        "message": str(error)[:MAX_MESSAGE],
    }
    if isinstance(error, QueryError):
        document |= {"message": error.message[:MAX_MESSAGE], "line": error.line, "column": error.column}
    return Record(names.status, json.dumps(document, ensure_ascii=False).encode(), refused_key(kind, name))


def accepted_record(names: TopicNames, kind: str, name: str) -> Record:
    """Return the record that deletes an earlier refusal of a request."""
    return Record(names.status, None, refused_key(kind, name))


def refused_key(kind: str, name: str) -> bytes:
    """Return the key of a refusal in the topic. `kind`: the kind of the requested object, "stream" or "query"."""
    return f"refused {kind} {name}".encode()


def _standing_key(name: str, number: int) -> bytes:
    return f"query {name} {number}".encode()


def _stands(key: bytes, queries: dict[str, QueryRegistration]) -> bool:
    name, _, number = key.decode().removeprefix("query ").rpartition(" ")
    record = queries.get(name)
    return record is not None and str(record.number) == number


class StatusView:
    """The status topic, as the coordinator reads it."""

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._view = CompactedView(log, [Partition(names.status)])
        self._names = names
        self._unchecked: dict[bytes, None] = {}

    def refresh(self) -> None:
        """Read new records."""
        self._unchecked.update(dict.fromkeys(message.key for message in self._view.refresh() if message.key))

    def standing(self, record: QueryRegistration) -> Standing | None:
        """Return the status of a registration, or None if no engine has enrolled the query."""
        message = self._view.latest.get(_standing_key(record.name, record.number))
        if message is None or message.value is None:
            return None
        document = json.loads(message.value)
        gaps = tuple(Gap(gap["after"], gap["until"], gap["count"]) for gap in document.get("gaps", ()))
        refused = document["status"] == "refused"
        return Standing(document["number"], document["point"], gaps, document.get("error"), refused)

    def refused(self, kind: str, name: str) -> bool:
        """Return whether the topic contains a refusal. `kind`, `name`: as for `refused_key`."""
        return refused_key(kind, name) in self._view.latest

    def surplus(self) -> list[Record]:
        """Return the records that delete the oldest refusals beyond `MAX_REFUSED`."""
        keys = [key for key in self._view.latest if key.startswith(b"refused ")]
        return [Record(self._names.status, None, key) for key in keys[: max(0, len(keys) - MAX_REFUSED)]]

    def outdated(self, queries: dict[str, QueryRegistration]) -> list[Record]:
        """Return the records that delete the statuses of stopped queries. `queries`: the standing queries, by name.
        Checks only records that are new since the last call of `checked`. Call `checked` after the returned records are
        written.
        """
        keys = [key for key in self._unchecked if key.startswith(b"query ") and key in self._view.latest]
        return [Record(self._names.status, None, key) for key in keys if not _stands(key, queries)]

    def checked(self) -> None:
        """Make `outdated` skip the records that `refresh` has read so far."""
        self._unchecked.clear()

    def check_all(self) -> None:
        """Make `outdated` check all records again. This is needed because an earlier coordinator possibly failed before
        the deletion of all outdated statuses.
        """
        self._unchecked.update(dict.fromkeys(self._view.latest))

    def close(self) -> None:
        """Close the reader."""
        self._view.close()
