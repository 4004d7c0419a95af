"""The limits of an engine. The limits bound everything that grows with the input. Each limit has a name and a default
value. The error for an exceeded limit contains the limit's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.budget import PlanningLimits

MAX_CATCH_UP = 1_000_000
MOST_CATCH_UP = 1_000_000_000
"""Default and maximum of `max_catch_up`."""


@dataclass(frozen=True, slots=True)
class Limits(PlanningLimits):
    """Limits of an engine. `PlanningLimits` has the limits on texts and plans.

    `max_catch_up`: maximum number of instants per query that become due in one push or advance (docs/semantics.md §2).
    In a cluster, the registration of each query contains this limit (ADR 57). `max_unpolled`: maximum number of pending
    evaluations per query. A push or advance that would exceed this limit is refused. `unpolled_mb`: maximum total size
    of pending answers in MiB (0 = no limit), enforced in the same way. A query with a subscriber has no pending
    answers.

    The outputs of refused events are the dead-letter output, and each stream's output of late events. `max_refused`:
    maximum number of entries in such an output. `refused_bytes`: maximum total size in bytes of the original events in
    such an output. `max_event_bytes`: maximum size of the text of an event. `max_streams`: maximum number of declared
    streams. `max_queries`: maximum number of standing queries. A query set counts as one query. `max_members`: maximum
    number of members of all query sets. `max_member_bytes`: maximum size of a value in the row of a member.

    `evaluation_timeout_s`: maximum duration in s of an evaluation of a standing query (0 = no limit).
    `query_timeout_s`: maximum duration in s of a one-shot query (0 = no limit). `evaluation_memory_mb`: maximum memory
    in MiB of an evaluation or one-shot query (0 = no limit). `max_shards`: maximum number of shards of a stored graph.
    `text_cache`: maximum number of cached parsed texts. `plan_cache`: maximum number of cached plans of one-shot
    queries.

    `log_bytes`: if the write-ahead log becomes larger than this size, the engine writes a checkpoint, which replaces
    the log. `cached_terms_mb`: if the term cache of a query engine becomes larger than this size in MiB, the query
    engine evicts unused terms (ADR 37).
    """

    max_catch_up: int = MAX_CATCH_UP
    max_unpolled: int = 100_000
    unpolled_mb: int = 2_048
    max_refused: int = 100_000
    refused_bytes: int = 64 << 20
    max_event_bytes: int = 64 << 20
    max_streams: int = 65_536
    max_queries: int = 1_000_000
    max_members: int = 20_000_000
    max_member_bytes: int = 65_536
    max_shards: int = 1_024
    evaluation_timeout_s: float = 10.0
    query_timeout_s: float = 60.0
    evaluation_memory_mb: int = 4_096
    text_cache: int = 1_024
    plan_cache: int = 1_024
    log_bytes: int = 256 << 20
    cached_terms_mb: int = 512


MAX_TIME_MS = 1 << 60
"""Event times are greater than -MAX_TIME_MS and less than MAX_TIME_MS, so that the sum of a time and a range does not
overflow 64 bits.
"""
