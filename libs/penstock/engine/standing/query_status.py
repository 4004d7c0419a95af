"""The status of a standing query: the streams for which the query waits, and the input that would end the wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.event_time.grid import batch_end

if TYPE_CHECKING:
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.groups import Member

    State = Literal["waiting", "catching up", "stopped", "refused"]


@dataclass(frozen=True, slots=True)
class StreamWait:
    """A stream for which a query waits. `required` is the watermark in ms at which the wait ends. If `required` is
    None, any progress of the stream ends the wait. `release` describes the input or report that would end the wait.

    `publisher` is the name of the query that publishes the stream, or None if the stream is not derived.
    """

    stream: str
    watermark: int | None
    required: int | None
    publisher: str | None
    release: str


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """The status of a query. `last` is the last evaluated instant in ms, or None if there is none. `next` is the next
    instant in ms, or None if it is unknown. The next instant is unknown if there is no registration point, or if the
    query has count windows whose next report is unknown. `waits_for` contains the streams that have not ended and have
    not closed their batches up to and including `next`. If `next` is None, `waits_for` contains all streams that have
    not ended.

    `state` is "stopped" if the query is stopped. The state is "catching up" if some due instants are not evaluated yet,
    for example because the query began in the past. The state is "refused" only in a cluster (`ClusterQueryStatus`).
    Otherwise, the state is "waiting".
    """

    name: str
    state: State
    registration_point: int | None
    last: int | None
    next: int | None
    waits_for: tuple[StreamWait, ...] = ()


def part_order(state: str, following: int | None) -> tuple[bool, int]:
    """Return the order of the parts of a query set. The status of the set is the status of its first part. This is the
    part with the earliest next instant. A part without members comes last. `following`: `QueryStatus.next`.
    """
    return state == "stopped", 1 << 63 if following is None else following


def status_of(member: Member) -> QueryStatus:
    """Return the current status of a query."""
    cohort, name, point = member.cohort, member.name, member.point
    if member.result_queue.ended or cohort is None:
        return QueryStatus(name, "stopped", point, None, None)
    trigger, streams = cohort.trigger, cohort.group.streams
    following = None if trigger is None else trigger.next
    waits = tuple(_wait(stream, following) for stream in streams if _is_behind(stream, following))
    last = None if trigger is None or trigger.last in (point, cohort.group.begins_after) else trigger.last
    is_due = following is not None and not waits and not all(stream.ended for stream in streams)
    return QueryStatus(name, "catching up" if is_due else "waiting", point, last, following, waits)


def _is_behind(stream: LiveStream, following: int | None) -> bool:
    return not stream.ended and (following is None or not stream.has_closed(following))


def _wait(stream: LiveStream, following: int | None) -> StreamWait:
    required = None if following is None else batch_end(following, stream.batch_ms)
    return StreamWait(stream.iri, stream.watermark, required, stream.publisher, _release(stream, required))


def _release(stream: LiveStream, required: int | None) -> str:
    """Describe the input or report that would advance the stream to `required` and thus end the wait."""
    if stream.publisher is not None:
        return f"query {stream.publisher}, which publishes <{stream.iri}>, reports further"
    if required is None:
        return f"a tuple of <{stream.iri}>, and a watermark that closes its batch"
    later = required + stream.declaration.lateness_ms
    return f"an event on <{stream.iri}> later than {later} ms, or advance to {required} ms"
