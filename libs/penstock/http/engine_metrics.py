"""Prometheus metrics of an embedded engine, collected from `Engine.stats()` on each scrape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.core import Metric

    from penstock.engine import Engine

_TOTALS = {  # counters: key of stats -> meaning
    "evaluations": "evaluations",
    "updated_evaluations": "evaluations of GROUP BY, DISTINCT and stream operators from the changes of their input",
    "complete_evaluations": "evaluations of GROUP BY, DISTINCT and stream operators from their complete input",
    "dead_letters": "rejected events",
    "terms_forgotten": "terms removed because only released timing data used them",
}
_NOW = {  # gauges
    "triples": "stored triples",
    "snapshot": "number of the latest snapshot",
    "store_bytes": "memory of the stored graph",
    "log_bytes": "memory of append logs",
    "terms": "terms of the dictionary",
    "dictionary_bytes": "memory of the dictionary",
    "windows": "distinct windows, each shared by its queries",
    "window_bytes": "memory of windows",
    "state_bytes": "memory of the state that GROUP BY, DISTINCT and ORDER BY keep between evaluations",
}
_STREAM_TOTALS = {"events": "accepted events", "tuples": "accepted tuples", "late": "late events"}
_STREAM_NOW = {
    "watermark": "watermark, ms since the epoch",
    "live_tuples": "tuples in window state",
    "live_bytes": "memory of the tuples in window state",
    "stored_tuples": "tuples absorbed into the stored graph",
    "stored_bytes": "estimated memory of absorbed tuples",
}
_QUERY_NOW = {"last": "instant of the last evaluation, ms", "next": "instant of the next evaluation, ms"}


class EngineCollector(Collector):
    """All metrics of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
        stats = self._engine.stats()
        for name, meaning in _TOTALS.items():
            yield CounterMetricFamily(f"penstock_{name}", meaning, value=stats[name])
        for name, meaning in _NOW.items():
            yield GaugeMetricFamily(f"penstock_{name}", meaning, value=stats[name])
        yield from _labelled(CounterMetricFamily, "stream", _STREAM_TOTALS, stats["streams"])
        yield from _labelled(GaugeMetricFamily, "stream", _STREAM_NOW, stats["streams"])
        yield from _labelled(GaugeMetricFamily, "query", _QUERY_NOW, stats["queries"])


def _labelled(
    family: type[CounterMetricFamily | GaugeMetricFamily],
    label: str,
    meanings: Mapping[str, str],
    entries: Mapping[str, Mapping[str, Any]],
) -> Iterator[Metric]:
    for name, meaning in meanings.items():
        metric = family(f"penstock_{label}_{name}", meaning, labels=[label])
        for entry, numbers in entries.items():
            if numbers[name] is not None:
                metric.add_metric([entry], numbers[name])
        yield metric


def registry_of(engine: Engine) -> CollectorRegistry:
    """Return a registry with an engine's metrics."""
    registry = CollectorRegistry()
    registry.register(EngineCollector(engine))
    return registry
