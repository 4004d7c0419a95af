"""Every metric of every service, declared here and nowhere else; docs/operations.md explains them to operators."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_LATENCY_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one process, in a registry of its own."""

    def __init__(self, service: str) -> None:
        self.registry = CollectorRegistry()
        self.service = service
        self.events = self._counter("events", "events taken in")
        self.tuples = self._counter("tuples", "tuples written or applied")
        self.discarded = self._counter("discarded_tuples", "tuples that no query looks at, and were not written")
        self.duplicates = self._counter("duplicates", "events that had been taken in before")
        self.far_advances = self._counter("far_advances", "heartbeats too far ahead of the stream, not believed")
        self.late = self._counter("late_events", "events whose time had been closed")
        self.dead_letters = self._counter("dead_letters", "input that could not be used")
        self.ignored = self._counter("ignored_records", "records of the heartbeats topic that could not be read")
        self.batches = self._counter("batches", "batches closed or applied, empty ones included")
        self.transactions = self._counter("transactions", "transactions committed")
        self.evaluations = self._counter("evaluations", "evaluations committed")
        self.gaps = self._counter("gaps", "gaps: leaps of event time that a query does not evaluate, by query")
        self.skipped = self._counter("skipped_instants", "instants in gaps")
        self.refused = self._counter("refused_evaluations", "answers that their topic refused, committed as errors")
        self.forks = self._counter("forks", "forks: steps that stores ran for this engine")
        self.forked_rows = self._counter("forked_rows", "rows that went to stores with forks")
        self.retries = self._counter("transient_failures", "steps that failed and were tried again")
        self.lag = self._gauge("lag_records", "records between this stage and the end of its input", "topic")
        self.batch_age = self._gauge("batch_age_seconds", "wall clock minus the end of the last closed batch", "stream")
        self.watermark = self._gauge("watermark_ms", "event time of a stream, ms since the epoch", "stream")
        self.local_vts = self._gauge("local_vts_ms", "end of a stream's last batch that all shards here have", "stream")
        self.buckets = self._gauge("buckets", "shares of the standing queries that this engine evaluates")
        self.queries = self._gauge("queries", "standing queries")
        self.streams = self._gauge("streams", "declared streams")
        self.leases = self._gauge("leases", "engines that hold a lease here")
        self.memory = self._gauge("memory_bytes", "memory held", "region")
        self.active = self._gauge("active", "1 where this instance is the active one")
        self.step = self._histogram("step_seconds", "one step that had work")
        self.latency = self._histogram("result_latency_seconds", "a batch in the log to an evaluation committed")

    def _counter(self, name: str, help_: str) -> Counter:
        return Counter(f"penstock_{name}", help_, registry=self.registry)

    def _gauge(self, name: str, help_: str, *labels: str) -> Gauge:
        return Gauge(f"penstock_{name}", help_, labels, registry=self.registry)

    def _histogram(self, name: str, help_: str) -> Histogram:
        return Histogram(f"penstock_{name}", help_, registry=self.registry, buckets=_LATENCY_S)


class Tally:
    """Brings a counter up to a total that somebody else counts."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._seen = 0

    def reach(self, total: int) -> None:
        """Add what has come since the last call."""
        if total > self._seen:
            self._counter.inc(total - self._seen)
        self._seen = total
