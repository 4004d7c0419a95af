"""The status of a query in a cluster. The coordinator and the query engine that evaluates the query give the status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.standing.query_status import QueryStatus, StreamWait, part_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True, slots=True)
class ClusterQueryStatus(QueryStatus):
    """The status of a query, like the embedded engine's `QueryStatus`.

    `evaluated`: whether a query engine evaluates the query at present. This is False for a short time when engines
    start or buckets move. Then `last` and `next` are None, and `waits_for` is empty. `error`: the reason why the
    query's results topic rejects answers, or why the query is refused, or None.

    `state` is "refused" if the query cannot begin in the past, because tuples that it needs are released. Such a query
    is never evaluated.
    """

    evaluated: bool = True
    error: str | None = None


def status_of_documents(
    name: str, registration: Mapping[str, Any] | None, found: Iterable[Mapping[str, Any]] = ()
) -> ClusterQueryStatus:
    """Return the status of a query. `registration`: the document from the coordinator, or None if the query is not
    registered. `found`: the documents from the query engines that evaluate the query, or parts of the query set.
    """
    if registration is None:
        return ClusterQueryStatus(name, "stopped", None, None, None, evaluated=False)
    error: str | None = registration["error"]
    if registration.get("refused"):
        return ClusterQueryStatus(name, "refused", None, None, None, evaluated=False, error=error)
    progress = min(found, key=lambda each: part_order(each["state"], each["next"]), default=None)
    if progress is None:
        return ClusterQueryStatus(name, "waiting", registration["point"], None, None, evaluated=False, error=error)
    waits = tuple(StreamWait(**wait) for wait in progress["waits_for"])
    point, last, following = (progress[each] for each in ("registration_point", "last", "next"))
    return ClusterQueryStatus(name, progress["state"], point, last, following, waits, error=error)
