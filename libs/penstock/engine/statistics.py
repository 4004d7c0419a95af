"""The statistics of `Engine.stats()`: numbers for each stream, for each query, and for the whole engine."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from penstock.engine.sets.set_member import SetMember
from penstock.engine.standing.query_status import status_of

if TYPE_CHECKING:
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.runtime import Runtime
    from penstock.engine.standing.groups import Member


def stream_stats(stream: LiveStream, bytes_per_triple: float = 0.0) -> dict[str, Any]:
    """Return the statistics of a stream. Times are in ms, sizes in bytes.

    `push_again` is the position at which a producer must resume after a restart. Take the producer's events with times
    τ ≥ `from`, in their original order, and leave out events with an invalid time. The engine has already processed the
    first `skip` events of this series, including refused events. The producer must push the other events of the series
    again.

    `stored_tuples` is the number of tuples that were absorbed into the stored graph, including duplicates.
    `stored_bytes` is an estimate of the memory of these tuples. The estimate uses `bytes_per_triple`, the average of
    the stored graph.
    """
    watermark = stream.watermark
    resume = None if watermark is None or stream.publisher else {"from": watermark + 1, "skip": stream.arrived_beyond}
    return {
        "watermark": watermark,
        "closed": stream.closed_ms,
        "events": stream.events,
        "tuples": stream.tuples,
        "late": stream.late.total,
        "late_lost": stream.late.lost,
        "live_tuples": stream.core.live_tuples(),
        "live_bytes": stream.core.live_bytes(),
        "stored_tuples": stream.stored_tuples,
        "stored_bytes": round(stream.stored_tuples * bytes_per_triple),
        "publisher": stream.publisher,
        "ended": stream.ended,
        "push_again": resume,
    }


def query_stats(query: Member) -> dict[str, Any]:
    """Return the statistics of a query. Times are in ms."""
    cohort = query.cohort
    trigger = None if cohort is None else cohort.trigger
    return {
        "registration_point": query.point,
        "last": None if trigger is None else trigger.last,
        "next": None if trigger is None else trigger.next,
        "members": len(query) if isinstance(query, SetMember) else 0 if cohort is None else len(cohort),
        "unpolled": len(query.result_queue),
        "waits_for": [asdict(wait) for wait in status_of(query).waits_for],
        "gaps": [(gap.after, gap.until, gap.count) for gap in query.gaps],
    }


def engine_stats(runtime: Runtime) -> dict[str, Any]:
    """Return all statistics of an engine. Times are in ms, sizes in bytes."""
    core, streams, registry = runtime.core, runtime.streams, runtime.registry
    triples, store_bytes = core.store.edge_count(), core.store.used_bytes()
    each = store_bytes / max(1, triples)
    return {
        "attempt": core.attempt,
        "snapshot": core.store.latest(),
        "triples": triples,
        "store_bytes": store_bytes,
        "log_bytes": core.store.log_bytes(),
        "terms": core.dictionary.size(),
        "dictionary_bytes": core.dictionary.bytes(),
        "terms_forgotten": runtime.forgetting.forgotten,
        "evaluations": runtime.firing.evaluations,
        "updated_evaluations": core.maintenance.updated,
        "complete_evaluations": core.maintenance.complete,
        "state_bytes": core.maintenance.state_bytes,
        "dead_letters": runtime.dead_letters.total,
        "dead_letters_lost": runtime.dead_letters.lost,
        "groups": len(list(registry.groups)),
        "windows": len(registry.pool),
        "window_bytes": registry.pool.bytes(),
        "streams": {stream.iri: stream_stats(stream, each) for stream in streams},
        "queries": {name: query_stats(query) for name, query in registry.members.items()},
    }
