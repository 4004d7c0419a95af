"""The status topic: what became of queries and of requests made by topic. Compacted; JSON, for users to read as it is.

| key | written by | value |
| --- | --- | --- |
| `query NAME` | the engine that takes a query in | its number and its registration point, null until that is known |
| `refused KIND NAME` | the coordinator | why the last record of that name was refused, with line and column |

A key goes when what it says holds no more: the query was stopped, a later record of that name was taken.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import QueryError
from penstock.log import Partition, Record
from penstock.log.view import CompactedView

if TYPE_CHECKING:
    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames
    from penstock.wire import QueryRegistration

MAX_REFUSED = 10_000
"""Refusals that are kept; the oldest goes first."""


class Standing(NamedTuple):
    """A query that an engine has taken in. `point_ms`: P, None until one of its streams has progress."""

    number: int
    point_ms: int | None


def standing_record(names: TopicNames, record: QueryRegistration, point_ms: int | None) -> Record:
    """Return what an engine says of a query."""
    value = {"status": "standing", "query": record.name, "number": record.number, "point": point_ms}
    return Record(names.status, json.dumps(value).encode(), _standing_key(record.name))


def stopped_record(names: TopicNames, name: str) -> Record:
    """Return what makes the status of a query go."""
    return Record(names.status, None, _standing_key(name))


def refused_record(names: TopicNames, kind: str, name: str, source: str, error: Exception) -> Record:
    """Return why a request was refused. `source`: topic/partition/offset."""
    told: dict[str, str | int] = {
        "status": "refused",
        kind: name,
        "source": source,
        "error": type(error).__name__,
        "message": str(error),
    }
    if isinstance(error, QueryError):
        told |= {"message": error.message, "line": error.line, "column": error.column}
    return Record(names.status, json.dumps(told, ensure_ascii=False).encode(), refused_key(kind, name))


def accepted_record(names: TopicNames, kind: str, name: str) -> Record:
    """Return what makes an earlier refusal go."""
    return Record(names.status, None, refused_key(kind, name))


def refused_key(kind: str, name: str) -> bytes:
    """Return the key of a refusal."""
    return f"refused {kind} {name}".encode()


def _standing_key(name: str) -> bytes:
    return f"query {name}".encode()


class StatusView:
    """The status topic as a coordinator follows it."""

    def __init__(self, log: Log, names: TopicNames) -> None:
        self._view = CompactedView(log, [Partition(names.status)])
        self._names = names

    def refresh(self) -> list[Message]:
        """Take in what has come, and return it."""
        return self._view.refresh()

    def standing(self, record: QueryRegistration) -> Standing | None:
        """Return what engines have said of a registration, None while none has taken it in."""
        message = self._view.latest.get(_standing_key(record.name))
        if message is None or message.value is None:
            return None
        told = json.loads(message.value)
        return Standing(told["number"], told["point"]) if told["number"] == record.number else None

    def refused(self, kind: str, name: str) -> bool:
        """Whether the last record of that name was refused."""
        return refused_key(kind, name) in self._view.latest

    def surplus(self) -> list[Record]:
        """Return what makes the oldest refusals go, where there are too many."""
        keys = [key for key in self._view.latest if key.startswith(b"refused ")]
        return [Record(self._names.status, None, key) for key in keys[: max(0, len(keys) - MAX_REFUSED)]]

    def outdated(self, messages: list[Message], queries: dict[str, QueryRegistration]) -> list[Record]:
        """Return what makes statuses among `messages` go that engines wrote after their query was stopped."""
        names = (message.key.decode()[6:] for message in messages if message.key and message.key.startswith(b"query "))
        return [stopped_record(self._names, name) for name in names if name not in queries and self._has(name)]

    def _has(self, name: str) -> bool:
        return _standing_key(name) in self._view.latest

    def close(self) -> None:
        """Let go."""
        self._view.close()
