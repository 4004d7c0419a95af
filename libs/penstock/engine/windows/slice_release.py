"""Release of slices that neither windows nor the retention need, and of append logs that no evaluation reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.windows.reach import reach
from penstock.engine.windows.trigger import GridTrigger
from penstock.engine.windows.window_contents import CountedWindow
from penstock.event_time.grid import batch_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.groups import Cohort, Group
    from penstock.engine.stored_graph import StoredGraph
    from penstock.engine.windows.window_contents import Window


def release(stream: LiveStream, readers: Iterable[Group], store: StoredGraph) -> None:
    """Release a stream's slices and append logs that will not be read again. `readers` are the groups that read the
    stream.

    `stream.retained_from` and `stream.evaluated_from` are the cluster's retention floors. In an embedded engine, both
    are None.
    """
    closed = stream.closed_ms
    if closed is None:
        return
    retained_from = closed - stream.declaration.retention_ms
    evaluated_from = closed
    if stream.retained_from is not None:
        retained_from = min(retained_from, stream.retained_from)
    if stream.evaluated_from is not None:
        evaluated_from = min(evaluated_from, stream.evaluated_from)
    for group in readers:
        reached = reach(group)
        for cohort in group.cohorts:
            if cohort.point is None:
                continue  # the cohort begins later, and reads no batch that is closed already
            evaluated_from = min(evaluated_from, _next_read(cohort, reached))
            for window in cohort.windows:
                if window.stream is stream:
                    retained_from = min(retained_from, held_from(window, cohort, closed))
    stream.core.release(retained_from // stream.batch_ms - 1)
    store.release(stream.number, batch_of(evaluated_from, stream.batch_ms))


def _next_read(cohort: Cohort, reached: int | None) -> int:
    """Return a time in ms. From now on, the cohort is not evaluated before this time. `reached`: see `reach`.

    If a stream lags, another text can replace the cohort's queries. The later text can have instants before the
    cohort's next instant, but no instants before `reached` (ADR 95). The count window of a lagging stream can also
    report before `cohort.next`.
    """
    if isinstance(cohort.trigger, GridTrigger):
        last = cohort.trigger.last
        return min(cohort.trigger.next, last if reached is None else max(reached, last))
    assert cohort.point is not None
    behind = [cohort.point if stream.closed_ms is None else stream.closed_ms for stream in cohort.group.streams]
    return min(behind) if cohort.next is None else min(*behind, cohort.next)


def held_from(window: Window, cohort: Cohort, closed: int) -> int:
    """Return a time in ms. From now on, the window needs no tuples at or before this time. `closed` is the end of the
    stream's last closed batch.
    """
    assert cohort.point is not None
    if window.made is None:
        return cohort.point
    if isinstance(window, CountedWindow):
        oldest = window.made.oldest_batch()
        return closed if oldest is None else oldest * window.stream.batch_ms
    # Another cohort can have moved a shared window past this cohort's next instant.
    assert isinstance(cohort.trigger, GridTrigger)
    floor = window.held_from(cohort.trigger.next)
    return floor if window.start is None else min(window.start, floor)
