"""`make test-k8s` where it cannot run, and the parts of it that need no cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("confluent_kafka")

from tools.kubernetes import cluster, load, steps

ROOT = Path(__file__).parents[2]


def test_without_the_script_it_says_what_is_missing_and_exits_with_2(tmp_path: Path):
    environment = os.environ | {
        "KUBE_SH": str(tmp_path / "kube.sh"),
        "KUBE_DIR": str(tmp_path),
        "PYTHONPATH": f"{ROOT}:{ROOT / 'libs'}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "tools.kubernetes"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 2
    assert f"{tmp_path / 'kube.sh'}: the script that runs Kubernetes here (KUBE_SH names it)" in done.stderr


def test_the_load_has_answers_to_compare():
    made = load.Load("127.0.0.1:1")
    made.sent = [
        (load.BEGIN_MS + i * 20, b'<http://x/1> <http://x/p> "%d"^^<%s> .' % (i, load._INTEGER.encode()))
        for i in range(1, 500)
    ]
    expected = made._expected()
    assert {name for name, _ in expected} == set(load.QUERIES)
    assert sum("room1" in content for content in expected.values()) > 5


def test_values_of_the_test_are_values_of_the_chart():
    chart = yaml.safe_load((ROOT / "helm" / "penstock" / "values.yaml").read_text())
    for component, values in steps.VALUES.items():
        assert values.keys() <= chart[component].keys()
    assert cluster.FULL_NAME == "ps-penstock"
