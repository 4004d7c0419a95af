"""The status of a query in a cluster: what the coordinator and the query engine of its bucket know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.standing.query_status import QueryStatus, StreamWait

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ClusterQueryStatus(QueryStatus):
    """The status of a query, like the embedded engine's `QueryStatus`.

    `evaluated`: whether a query engine evaluates it at present. If not (engines start, or hand over their buckets),
    `last` and `next` are None and `waits_for` is empty. `error`: why the query's results topic rejects answers.
    """

    evaluated: bool = True
    error: str | None = None


def status_of_documents(
    name: str, registration: Mapping[str, Any] | None, progress: Mapping[str, Any] | None
) -> ClusterQueryStatus:
    """Return the status of a query from the coordinator's and an engine's documents, each None if there is none."""
    if registration is None:
        return ClusterQueryStatus(name, "stopped", None, None, None, evaluated=False)
    error: str | None = registration["error"]
    if progress is None:
        return ClusterQueryStatus(name, "waiting", registration["point"], None, None, evaluated=False, error=error)
    waits = tuple(StreamWait(**wait) for wait in progress["waits_for"])
    point, last, following = (progress[each] for each in ("registration_point", "last", "next"))
    return ClusterQueryStatus(name, progress["state"], point, last, following, waits, error=error)
