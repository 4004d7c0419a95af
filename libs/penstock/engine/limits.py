"""Limits on everything in an engine that grows with input. Each has a name, a default and an error that cites it."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.budget import PlanningLimits

MAX_CATCH_UP = 1_000_000
MOST_CATCH_UP = 1_000_000_000
"""Default and maximum of `max_catch_up`."""


@dataclass(frozen=True, slots=True)
class Limits(PlanningLimits):
    """Limits of an engine. `PlanningLimits` has those of texts and plans.

    max_catch_up: instants per query that one push or advance may evaluate (docs/semantics.md §2). In a cluster, the
    registration of each query contains it (ADR 57).
    max_unpolled: pending evaluations per query; a push or advance that would exceed it is refused.
    unpolled_mb: total size of pending answers, enforced in the same way (0 = no limit). A query with a subscriber has
    no pending answers.
    max_refused, refused_bytes: entries, and bytes of original input, retained in each late and dead-letter output.
    max_event_bytes: size of an event's text.
    max_streams, max_queries: number of declarations and registrations.
    evaluation_timeout_s, query_timeout_s: time of an evaluation of a standing query, and of a one-shot query (0 = no
    limit).
    evaluation_memory_mb: memory of either (0 = no limit).
    max_shards: shards of a stored graph.
    text_cache, plan_cache: number of cached parse results and plans of one-shot queries.
    log_bytes: size of the write-ahead log that triggers a checkpoint, which truncates it.
    cached_terms_mb: size of unused terms that an engine of a cluster caches (ADR 37).
    """

    max_catch_up: int = MAX_CATCH_UP
    max_unpolled: int = 100_000
    unpolled_mb: int = 2_048
    max_refused: int = 100_000
    refused_bytes: int = 64 << 20
    max_event_bytes: int = 64 << 20
    max_streams: int = 65_536
    max_queries: int = 1_000_000
    max_shards: int = 1_024
    evaluation_timeout_s: float = 10.0
    query_timeout_s: float = 60.0
    evaluation_memory_mb: int = 4_096
    text_cache: int = 1_024
    plan_cache: int = 1_024
    log_bytes: int = 256 << 20
    cached_terms_mb: int = 512


MAX_TIME_MS = 1 << 60
"""Event times are in (-MAX_TIME_MS, MAX_TIME_MS), so that the sum of a time and a range does not overflow 64 bits."""
