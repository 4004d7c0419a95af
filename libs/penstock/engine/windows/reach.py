"""The progress of the streams of a group: the instants that are due, and the instants that would become due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.windows.trigger import GridTrigger

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.groups import Cohort, Group


def reach(group: Group, targets: dict[LiveStream, int] | None = None) -> int | None:
    """Return a time in ms, or None if nothing is due. The group's instants at or before this time are due (Wukong+S:
    Stable_VTS). The time is the smallest `target_ms` of the group's streams. `targets` contains times for some streams.
    If a stream has a later time in `targets` than in `target_ms`, the later time replaces `target_ms`.

    Streams that have ended do not count. If all streams have ended, the result is the greatest `target_ms`.
    """
    least: int | None = None
    for stream in group.streams:
        if stream.ended:
            continue
        target = stream.target_ms
        if targets is not None and stream in targets:
            target = targets[stream] if target is None else max(target, targets[stream])
        if target is None:
            return None
        if least is None or target < least:
            least = target
    if least is None:
        return max((stream.target_ms for stream in group.streams if stream.target_ms is not None), default=None)
    return least


def last_of(cohort: Cohort, points: dict[LiveStream, int]) -> int | None:
    """Return the last evaluated instant of a cohort. If the cohort has no registration point yet, return the
    registration point that the cohort would get. `points` contains such points by advanced stream. Return None if no
    stream of the cohort advances.
    """
    if isinstance(cohort.trigger, GridTrigger):
        return cohort.trigger.last
    return next((points[stream] for stream in cohort.group.streams if stream in points), None)


def first_closings(group: Group, targets: dict[LiveStream, int], points: dict[LiveStream, int]) -> Iterator[int]:
    """Yield one or two times for each advanced stream of a group. The stream will close its next batch at or after the
    earlier time.
    """
    for stream in group.streams:
        if stream in targets:
            yield min(points[stream], targets[stream])
            if (end := stream.first_open()) is not None:
                yield end - stream.batch_ms
