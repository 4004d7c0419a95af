"""All metrics of all services. The reference page of metrics is generated from this module."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0)


class CountedHistogram(Histogram):
    """A histogram that counts many equal values at once."""

    def observe_many(self, amount: float, count: int) -> None:
        """Observe the value `amount` repeatedly (`count` times). The time of the call does not depend on `count`."""
        self._sum.inc(amount * count)
        for bucket, bound in zip(self._buckets, self._upper_bounds, strict=True):
            if amount <= bound:
                bucket.inc(count)
                break


class Metrics:
    """The metrics of a process, in a separate registry."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        self.service = service
        self.events = self._counter("events", "events read")
        self.tuples = self._counter("tuples", "tuples written or applied")
        self.discarded = self._counter("discarded_tuples", "adaptor: tuples dropped by the predicate filter (ADR 45)")
        self.duplicates = self._counter("duplicates", "dispatcher: events that an adaptor wrote twice, dropped")
        self.far_advances = self._counter("far_advances", "dispatcher: heartbeats beyond max_ahead_ms, ignored")
        self.late = self._counter("late_events", "late events, written to the late topic")
        self.dead_letters = self._counter("dead_letters", "rejected events, written to the dead-letter topic")
        self.ignored = self._counter("ignored_records", "coordinator: undecodable heartbeats, skipped")
        self.batches = self._counter("batches", "batches closed or applied, empty ones included")
        self.transactions = self._counter("transactions", "transactions committed")
        self.evaluations = self._counter("evaluations", "evaluations committed, empty ones included")
        self.updated = self._counter(
            "updated_evaluations",
            "evaluations of GROUP BY, DISTINCT and stream operators from the changes of their input (ADR 78)",
        )
        self.complete = self._counter(
            "complete_evaluations", "evaluations of GROUP BY, DISTINCT and stream operators from their complete input"
        )
        self.gaps = self._counter("gaps", "gaps: jumps of event time beyond max_catch_up (ADR 57)")
        self.skipped = self._counter("skipped_instants", "instants in gaps")
        self.refused = self._counter("refused_evaluations", "answers that a topic rejected, committed as errors")
        self.forks = self._counter("forks", "steps that stores ran for this engine (ADR 18)")
        self.forked_rows = self._counter("forked_rows", "rows sent to stores with forked steps (ADR 18)")
        self.retries = self._counter("transient_failures", "steps that failed transiently and were retried")
        self.lag = self._gauge("lag_records", "input records that this service has not read yet", "topic")
        self.batch_age = self._gauge("batch_age_seconds", "wall clock minus the end of the last closed batch", "stream")
        self.watermark = self._gauge("watermark_ms", "watermark of a stream, ms since the epoch", "stream")
        self.local_vts = self._gauge("local_vts_ms", "store: event time that all its shards have applied", "stream")
        self.buckets = self._gauge("buckets", "buckets of standing queries that this engine evaluates")
        self.work = self._gauge("work_ratio", "query engine: share of the time in which it works for its buckets")
        self.queries = self._gauge("queries", "standing queries; on the active coordinator")
        self.streams = self._gauge("streams", "declared streams; on the active coordinator")
        self.leases = self._gauge("leases", "store: engines that hold a lease")
        self.memory = self._gauge("memory_bytes", "memory in use, by kind", "region")
        self.terms = self._gauge("terms", "dictionary: terms in memory, and all terms (ADR 104)", "place")
        self.state = self._gauge(
            "state_bytes", "memory of the state that GROUP BY, DISTINCT and ORDER BY keep between evaluations"
        )
        self.active = self._gauge("active", "1 on the active one of several instances")
        self.step = self._histogram("step_seconds", "duration of a step that had work")
        self.latency = self._histogram("result_latency_seconds", "from a batch in the log to a committed evaluation")

    def _counter(self, name: str, help_: str) -> Counter:
        return Counter(f"penstock_{name}", help_, registry=self.registry)

    def _gauge(self, name: str, help_: str, *labels: str) -> Gauge:
        return Gauge(f"penstock_{name}", help_, labels, registry=self.registry)

    def _histogram(self, name: str, help_: str) -> CountedHistogram:
        return CountedHistogram(f"penstock_{name}", help_, registry=self.registry, buckets=_LATENCY_S)


class Tally:
    """Keeps a counter equal to a total that another component has counted."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._seen = 0

    def reach(self, total: int) -> None:
        """Set a new total. If the new total is greater than the last total, increase the counter by the difference."""
        if total > self._seen:
            self._counter.inc(total - self._seen)
        self._seen = total
