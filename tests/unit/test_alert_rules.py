"""Each alert rule is pending or fires on the series of its fault, and no rule does on those of a sound cluster."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml

pytest.importorskip("prometheus_client")

from typing import TYPE_CHECKING

from tools import monitoring

if TYPE_CHECKING:
    from pathlib import Path

PROMTOOL = shutil.which("promtool")
ENDED_MIN = 40
pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
POD = 'namespace="n",pod="p",component="store"'
LATENCY = "penstock_result_latency_seconds_bucket"
SOUND = {
    f"up{{{POD}}}": "1x40",
    f'{LATENCY}{{namespace="n",le="0.1"}}': "0+60x40",
    f'{LATENCY}{{namespace="n",le="10"}}': "0+60x40",
    f'{LATENCY}{{namespace="n",le="+Inf"}}': "0+60x40",
    f'penstock_lag_records{{{POD},topic="t"}}': "0 5 3 0 8 1 0x34",
    'penstock_watermark_ms{namespace="n",pod="d",stream="s"}': "0+60000x40",
    'penstock_events_total{namespace="n",pod="a"}': "0+60x40",
    'penstock_active{namespace="n",component="coordinator",pod="c-0"}': "1x40",
    'penstock_active{namespace="n",component="coordinator",pod="c-1"}': "0x40",
    'penstock_buckets{namespace="n",pod="e"}': "8x40",
    'penstock_queries{namespace="n",pod="c-0"}': "3x40",
    'penstock_refused_evaluations_total{namespace="n",pod="e"}': "0x40",
    'penstock_gaps_total{namespace="n",pod="e"}': "0x40",
    'penstock_far_advances_total{namespace="n",pod="d"}': "0x40",
    'penstock_dead_letters_total{namespace="n",pod="a"}': "0x40",
    'penstock_transient_failures_total{namespace="n",pod="e"}': "0 1x39",
}  # fmt: skip
FAULTS = {
    "PenstockResultLatencyHigh": {f'{LATENCY}{{namespace="n",le="0.1"}}': "0x40"},
    "PenstockLagGrows": {f'penstock_lag_records{{{POD},topic="t"}}': "2000+100x40"},
    "PenstockWatermarkStalls": {'penstock_watermark_ms{namespace="n",pod="d",stream="s"}': "60000x40"},
    "PenstockNoActiveInstance": {'penstock_active{namespace="n",component="coordinator",pod="c-0"}': "0x40"},
    "PenstockBucketsUnassigned": {'penstock_buckets{namespace="n",pod="e"}': "0x40"},
    "PenstockRejectedAnswers": {'penstock_refused_evaluations_total{namespace="n",pod="e"}': "0x36 1x4"},
    "PenstockGaps": {'penstock_gaps_total{namespace="n",pod="e"}': "0x36 1x4"},
    "PenstockFarAdvances": {'penstock_far_advances_total{namespace="n",pod="d"}': "0x36 1x4"},
    "PenstockDeadLetters": {'penstock_dead_letters_total{namespace="n",pod="a"}': "0+1x40"},
    "PenstockTransientFailures": {'penstock_transient_failures_total{namespace="n",pod="e"}': "0+60x40"},
    "PenstockUnreachable": {f"up{{{POD}}}": "0x40"},
}  # fmt: skip


def promtool(*arguments: str | Path) -> str:
    assert PROMTOOL is not None
    done = subprocess.run([PROMTOOL, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def firing(tmp_path: Path, series: dict[str, str], names: set[str]) -> None:
    """Check that these rules fire on the series, and no other rule does."""
    expression = 'count by (alertname) (ALERTS{alertstate="firing"}) '
    test = {
        "rule_files": [str(monitoring.FOLDER / "rules.yaml")],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [
                    {
                        "expr": expression,
                        "eval_time": f"{ENDED_MIN}m",
                        "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(names)],
                    }
                ],
            }
        ],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump(test))
    promtool("test", "rules", file)


def test_prometheus_accepts_all_rules():
    assert f"SUCCESS: {len(monitoring.ALERTS)} rules found" in promtool(
        "check", "rules", monitoring.FOLDER / "rules.yaml"
    )


def test_no_rule_fires_on_a_sound_cluster(tmp_path: Path):
    firing(tmp_path, SOUND, set())


def test_every_rule_has_a_fault():
    assert list(FAULTS) == [alert.name for alert in monitoring.ALERTS]


@pytest.mark.parametrize("name", FAULTS)
def test_a_rule_fires_on_its_fault_alone(name: str, tmp_path: Path):
    firing(tmp_path, SOUND | FAULTS[name], {name})
