"""Writes the Grafana dashboards and Prometheus alert rules of the Helm chart: `python -m tools.monitoring`.

Each panel and rule names metrics of `penstock.runtime.metrics`; `tests/unit/test_monitoring.py` checks the names and
that the files agree with this module.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

FOLDER = Path(__file__).resolve().parent.parent / "helm" / "penstock" / "monitoring"
_COLUMNS, _WIDTH, _HEIGHT = 2, 12, 8
_SELECT = 'namespace=~"$namespace"'


@dataclass(frozen=True, slots=True)
class Panel:
    """A time series. `queries`: PromQL by legend. `unit`: a unit of Grafana."""

    title: str
    queries: dict[str, str]
    unit: str = "short"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule. The runbook has a section of the same name."""

    name: str
    expression: str
    for_: str
    severity: str
    summary: str


def _rate(metric: str, by: str = "") -> str:
    return f"sum{f' by ({by})' if by else ''} (rate({metric}{{{_SELECT}}}[5m]))"


def _quantile(share: float, metric: str, by: str = "") -> str:
    labels = "le" + (f", {by}" if by else "")
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{{{_SELECT}}}[5m])))"


USERS = [
    Panel(
        "Result latency",
        {f"p{int(q * 100)}": _quantile(q, "penstock_result_latency_seconds") for q in (0.5, 0.95, 0.99)},
        "s",
        "From a closed batch in the log to the committed evaluation.",
    ),
    Panel("Evaluations", {"per second": _rate("penstock_evaluations_total")}, "ops"),
    Panel(
        "Events",
        {
            "read": _rate("penstock_events_total"),
            "late": _rate("penstock_late_events_total"),
            "rejected": _rate("penstock_dead_letters_total"),
        },
        "ops",
    ),
    Panel(
        "Lag",
        {"{{pod}} {{topic}}": f"sum by (pod, topic) (penstock_lag_records{{{_SELECT}}})"},
        "short",
        "Input records that a service has not read yet.",
    ),
    Panel(
        "Watermark behind the wall clock",
        {"{{stream}}": f"time() - max by (stream) (penstock_watermark_ms{{{_SELECT}}}) / 1000"},
        "s",
        "Has no meaning for replayed streams.",
    ),
    Panel("Age of the last batch", {"{{stream}}": f"max by (stream) (penstock_batch_age_seconds{{{_SELECT}}})"}, "s"),
    Panel(
        "Queries and streams",
        {"queries": f"max(penstock_queries{{{_SELECT}}})", "streams": f"max(penstock_streams{{{_SELECT}}})"},
    ),
    Panel(
        "Gaps and rejected answers",
        {
            "skipped instants": _rate("penstock_skipped_instants_total"),
            "rejected answers": _rate("penstock_refused_evaluations_total"),
        },
        "ops",
    ),
]
DEVELOPERS = [
    Panel("Step duration (p99)", {"{{component}}": _quantile(0.99, "penstock_step_seconds", "component")}, "s"),
    Panel("Steps with work", {"{{component}}": _rate("penstock_step_seconds_count", "component")}, "ops"),
    Panel("Transactions", {"{{component}}": _rate("penstock_transactions_total", "component")}, "ops"),
    Panel("Batches", {"{{component}}": _rate("penstock_batches_total", "component")}, "ops"),
    Panel(
        "Tuples",
        {
            "{{component}}": _rate("penstock_tuples_total", "component"),
            "dropped by the predicate filter": _rate("penstock_discarded_tuples_total"),
        },
        "ops",
    ),
    Panel("Transient failures", {"{{pod}}": _rate("penstock_transient_failures_total", "pod")}, "ops"),
    Panel("Memory", {"{{pod}} {{region}}": f"sum by (pod, region) (penstock_memory_bytes{{{_SELECT}}})"}, "bytes"),
    Panel(
        "Event time of the shards behind the watermark",
        {
            "{{pod}} {{stream}}": f"(max by (stream) (penstock_watermark_ms{{{_SELECT}}})"
            f" - on (stream) group_right max by (pod, stream) (penstock_local_vts_ms{{{_SELECT}}})) / 1000"
        },
        "s",
    ),
    Panel("Leases", {"{{pod}}": f"sum by (pod) (penstock_leases{{{_SELECT}}})"}),
    Panel("Buckets", {"{{pod}}": f"sum by (pod) (penstock_buckets{{{_SELECT}}})"}),
    Panel("Forked steps", {"steps": _rate("penstock_forks_total"), "rows": _rate("penstock_forked_rows_total")}, "ops"),
    Panel("Active instances", {"{{pod}}": f"sum by (pod) (penstock_active{{{_SELECT}}})"}),
]
ALERTS = [
    Alert(
        "PenstockResultLatencyHigh",
        "histogram_quantile(0.99, sum by (namespace, le) (rate(penstock_result_latency_seconds_bucket[5m]))) > 1",
        "10m",
        "warning",
        "The p99 of the result latency is {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "PenstockLagGrows",
        "min_over_time(penstock_lag_records[10m]) > 1000 and delta(penstock_lag_records[10m]) > 0",
        "10m",
        "warning",
        "{{ $labels.pod }} is slower than its input {{ $labels.topic }}.",
    ),
    Alert(
        "PenstockWatermarkStalls",
        "changes(penstock_watermark_ms[10m]) == 0"
        " and on (namespace) sum by (namespace) (rate(penstock_events_total[10m])) > 0",
        "10m",
        "warning",
        "The watermark of {{ $labels.stream }} does not move, although events arrive.",
    ),
    Alert(
        "PenstockNoActiveInstance",
        'sum by (namespace, component) (penstock_active{component=~"coordinator|dictionary"}) != 1',
        "1m",
        "critical",
        "{{ $value }} instances of the {{ $labels.component }} are active; exactly one must be.",
    ),
    Alert(
        "PenstockBucketsUnassigned",
        "sum by (namespace) (penstock_buckets) == 0 and sum by (namespace) (penstock_queries) > 0",
        "2m",
        "critical",
        "No query engine evaluates the standing queries.",
    ),
    Alert(
        "PenstockRejectedAnswers",
        "increase(penstock_refused_evaluations_total[5m]) > 0",
        "0m",
        "warning",
        "A results topic rejects answers of {{ $labels.pod }}.",
    ),
    Alert(
        "PenstockGaps",
        "increase(penstock_gaps_total[5m]) > 0",
        "0m",
        "warning",
        "Event time jumped beyond max_catch_up: instants were skipped.",
    ),
    Alert(
        "PenstockFarAdvances",
        "increase(penstock_far_advances_total[5m]) > 0",
        "0m",
        "warning",
        "A producer's clock is wrong: its heartbeats are ignored.",
    ),
    Alert(
        "PenstockDeadLetters",
        "rate(penstock_dead_letters_total[5m]) > 0",
        "5m",
        "info",
        "Invalid events arrive: see the dead-letter topic.",
    ),
    Alert(
        "PenstockTransientFailures",
        "rate(penstock_transient_failures_total[5m]) > 0.1",
        "5m",
        "warning",
        "{{ $labels.pod }} retries: a broker, store or dictionary is unavailable.",
    ),
    Alert(
        "PenstockUnreachable",
        'up{component=~"dictionary|adaptor|dispatcher|coordinator|store|query-engine"} == 0',
        "2m",
        "critical",
        "The metrics of {{ $labels.pod }} cannot be read.",
    ),
]


def dashboard(uid: str, title: str, panels: list[Panel]) -> dict[str, Any]:
    """Return a dashboard in Grafana's JSON model."""

    def place(i: int) -> dict[str, int]:
        return {"x": i % _COLUMNS * _WIDTH, "y": i // _COLUMNS * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}

    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "uid": uid,
        "title": title,
        "tags": ["penstock"],
        "schemaVersion": 39,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "annotations": {"list": []},
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
                {
                    "name": "namespace",
                    "type": "query",
                    "label": "Namespace",
                    "datasource": source,
                    "query": "label_values(penstock_active, namespace)",
                    "includeAll": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                    "refresh": 2,
                },
            ]
        },
        "panels": [
            {
                "id": i + 1,
                "type": "timeseries",
                "title": panel.title,
                "description": panel.description,
                "datasource": source,
                "gridPos": place(i),
                "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
                "targets": [
                    {"refId": chr(ord("A") + k), "expr": query, "legendFormat": legend, "datasource": source}
                    for k, (legend, query) in enumerate(panel.queries.items())
                ],
            }
            for i, panel in enumerate(panels)
        ],
    }


def rules() -> dict[str, Any]:
    """Return the alert rules. RUNBOOK stands for the address of the runbook; the chart replaces it."""
    return {
        "groups": [
            {
                "name": "penstock",
                "rules": [
                    {
                        "alert": alert.name,
                        "expr": alert.expression,
                        "for": alert.for_,
                        "labels": {"severity": alert.severity},
                        "annotations": {"summary": alert.summary, "runbook_url": f"RUNBOOK#{alert.name.lower()}"},
                    }
                    for alert in ALERTS
                ],
            }
        ]
    }


def files() -> dict[str, str]:
    """Return the content of each file by its name."""
    boards = {
        "dashboard-users.json": dashboard("penstock-users", "Penstock: answers", USERS),
        "dashboard-developers.json": dashboard("penstock-developers", "Penstock: internals", DEVELOPERS),
    }
    texts = {name: json.dumps(board, indent=2) + "\n" for name, board in boards.items()}
    return texts | {"rules.yaml": yaml.safe_dump(rules(), sort_keys=False, width=1_000)}


def main() -> None:
    """Write all files."""
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
