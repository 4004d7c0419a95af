"""The status topic: what became of queries and of requests made by topic. Compacted; JSON, for users to read as it is.

| key | written by | value |
| --- | --- | --- |
| `query NAME NUMBER` | the engine that enrols a query | its registration point, null until that is known; gaps; error |
| `refused KIND NAME` | the coordinator | why the last record of that name was refused, with line and column |

A query is `failing`, with the error, while its results topic refuses answers; else it is `standing`.

The number is in the key because engines tell independently: one that is behind may speak of a query that was stopped,
after another one has told of the query that has its name now. A key goes when what it says holds no more.
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
"""Refusals that are kept; the oldest goes first."""
MAX_MESSAGE = 4_096
"""Characters of an error's message."""
MAX_REPORTED_GAPS = 100
"""Gaps of one query that its status tells, the latest."""


class Standing(NamedTuple):
    """A query that an engine has enrolled. `point_ms`: P, None until one of its streams has progress. `gaps`: instants
    that it does not evaluate, the latest `MAX_REPORTED_GAPS`. `error`: why its results topic does not have its answers.
    """

    number: int
    point_ms: int | None
    gaps: tuple[Gap, ...] = ()
    error: str | None = None


def standing_record(
    names: TopicNames,
    record: QueryRegistration,
    point_ms: int | None,
    gaps: Sequence[Gap] = (),
    error: str | None = None,
) -> Record:
    """Return what an engine says of a query."""
    value: dict[str, Any] = {"status": "standing", "query": record.name, "number": record.number, "point": point_ms}
    if gaps:
        value["gaps"] = [asdict(gap) for gap in gaps[-MAX_REPORTED_GAPS:]]
    if error is not None:
        value |= {"status": "failing", "error": error[:MAX_MESSAGE]}
    return Record(names.status, json.dumps(value).encode(), _standing_key(record.name, record.number))


def stopped_record(names: TopicNames, name: str, number: int) -> Record:
    """Return what makes the status of a query go."""
    return Record(names.status, None, _standing_key(name, number))


def refused_record(names: TopicNames, kind: str, name: str, source: str, error: Exception) -> Record:
    """Return why a request was refused. `source`: topic/partition/offset."""
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
    """Return what makes an earlier refusal go."""
    return Record(names.status, None, refused_key(kind, name))


def refused_key(kind: str, name: str) -> bytes:
    """Return the key of a refusal."""
    return f"refused {kind} {name}".encode()


def _standing_key(name: str, number: int) -> bytes:
    return f"query {name} {number}".encode()


def _stands(key: bytes, queries: dict[str, QueryRegistration]) -> bool:
    name, _, number = key.decode().removeprefix("query ").rpartition(" ")
    record = queries.get(name)
    return record is not None and str(record.number) == number


class StatusView:
    """The status topic as a coordinator follows it."""

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._view = CompactedView(log, [Partition(names.status)])
        self._names = names
        self._unchecked: dict[bytes, None] = {}

    def refresh(self) -> None:
        """Take in what has come."""
        self._unchecked.update(dict.fromkeys(message.key for message in self._view.refresh() if message.key))

    def standing(self, record: QueryRegistration) -> Standing | None:
        """Return what engines have said of a registration, None while none has taken it in."""
        message = self._view.latest.get(_standing_key(record.name, record.number))
        if message is None or message.value is None:
            return None
        document = json.loads(message.value)
        gaps = tuple(Gap(gap["after"], gap["until"], gap["count"]) for gap in document.get("gaps", ()))
        return Standing(document["number"], document["point"], gaps, document.get("error"))

    def refused(self, kind: str, name: str) -> bool:
        """Whether the last record of that name was refused."""
        return refused_key(kind, name) in self._view.latest

    def surplus(self) -> list[Record]:
        """Return what makes the oldest refusals go, where there are too many."""
        keys = [key for key in self._view.latest if key.startswith(b"refused ")]
        return [Record(self._names.status, None, key) for key in keys[: max(0, len(keys) - MAX_REFUSED)]]

    def outdated(self, queries: dict[str, QueryRegistration]) -> list[Record]:
        """Return what makes statuses go that engines wrote after their query was stopped. Then call `checked`."""
        keys = [key for key in self._unchecked if key.startswith(b"query ") and key in self._view.latest]
        return [Record(self._names.status, None, key) for key in keys if not _stands(key, queries)]

    def checked(self) -> None:
        """What has come so far needs no second look."""
        self._unchecked.clear()

    def check_all(self) -> None:
        """Look at everything: another coordinator may have ended in the middle of it."""
        self._unchecked.update(dict.fromkeys(self._view.latest))

    def close(self) -> None:
        """Let go."""
        self._view.close()
