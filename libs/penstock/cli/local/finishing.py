"""The end of a recording. The last report of each query is at the first instant at or after the last event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.event_time.grid import batch_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from penstock.engine import Engine, Evaluation, Query, QuerySet, Step

MAX_STEPS = 100_000
"""Maximum number of advances after the last event. A query that reads a derived stream can need one advance for each
instant of the query that publishes the stream.
"""


def finish(engine: Engine, queries: Iterable[Query | QuerySet], show: Callable[[Evaluation | Step], None]) -> None:
    """Advance all streams until each query has reported the window that contains the last event.

    Then stop each query with time windows. Such a query does not report later instants that only other queries need.
    Queries with count windows and queries that publish a stream continue.
    """
    last = _last_event(engine)
    if last is None:
        return
    live, ends, target = list(queries), dict[str, int](), last
    for _ in range(MAX_STEPS):
        states = engine.stats()["queries"]
        for query in live:
            following = states[query.name]["next"]
            if following is not None and following >= last:
                ends.setdefault(query.name, following)
        target = max(batch_end(target, declared.batch_ms) for declared in engine.streams.values())
        engine.advance(None, target)
        for query in live:
            _show(query, ends, last, show)
        live = _still_needed(engine, live, last)
        instants = [s["next"] for s in engine.stats()["queries"].values() if s["next"] is not None]
        later = [instant for instant in instants if instant > target]
        if not live or not later:
            return
        target = min(later)


def _last_event(engine: Engine) -> int | None:
    """Return the greatest watermark of the input streams. None if no stream has a watermark."""
    streams = engine.stats()["streams"].values()
    return max((s["watermark"] for s in streams if s["publisher"] is None and s["watermark"] is not None), default=None)


def _show(query: Query | QuerySet, ends: dict[str, int], last: int, show: Callable[[Evaluation | Step], None]) -> None:
    for evaluation in query.poll():
        if evaluation.time >= last:
            ends.setdefault(query.name, evaluation.time)
        if evaluation.time <= ends.get(query.name, last):
            show(evaluation)


def _still_needed(engine: Engine, live: list[Query | QuerySet], last: int) -> list[Query | QuerySet]:
    """Stop time-window queries that have reported the window with the last event, unless they publish a stream. Returns
    the queries that continue. The list is empty as soon as no query waits for a later instant.
    """
    stats = engine.stats()
    waiting = [query for query in live if _waits(stats["queries"][query.name], last)]
    if not waiting:
        return []
    publishers = {stream["publisher"] for stream in stats["streams"].values()}
    counted = [query for query in live if stats["queries"][query.name]["next"] is None]
    for query in live:
        if query not in waiting and query not in counted and query.name not in publishers:
            query.stop()
    return [query for query in live if not query.stopped]


def _waits(state: dict[str, Any], last: int) -> bool:
    """Return whether a query waits for another instant. False if the query has already evaluated an instant at or after
    the last event.
    """
    return state["next"] is not None and state["last"] < last
