"""`make test-k8s` where it cannot run, and the parts of it that need no cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("confluent_kafka")

from tools.kubernetes import cluster, images, load, spark, steps

ROOT = Path(__file__).parents[2]


def test_without_the_script_it_says_what_is_missing_and_exits_with_2(tmp_path: Path):
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"} | {
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


def program(folder: Path, name: str) -> Path:
    """Make a program that writes its arguments to a file, one call a line."""
    file = folder / name
    file.write_text(f'#!/bin/sh\necho {name} "$@" >> {folder / "calls"}\n')
    file.chmod(0o755)
    return file


def test_images_reach_an_existing_cluster_by_a_registry_or_as_archives(tmp_path: Path, monkeypatch):
    for name in ("kubectl", "docker", "buildah", "load"):
        program(tmp_path, name)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("CONTAINER_BUILD", "--build-arg BASE_IMAGE=b")
    for variable in ("PENSTOCK_IMAGE", "PENSTOCK_SPARK_IMAGE", "PENSTOCK_BROKER_IMAGE", "IMAGE_LOAD", "IMAGE_REGISTRY"):
        monkeypatch.delenv(variable, raising=False)
    assert cluster.missing() == []
    assert cluster.command("kubectl", "get") == [str(tmp_path / "kubectl"), "get"]
    with pytest.raises(cluster.StepError, match="IMAGE_REGISTRY or IMAGE_LOAD"):
        images.build()
    calls = tmp_path / "calls"
    calls.unlink()
    monkeypatch.setenv("IMAGE_REGISTRY", "r.example")
    images.build()
    text = calls.read_text()
    assert f"docker build --build-arg BASE_IMAGE=b -t {images.SERVICES} {ROOT}\ndocker push {images.SERVICES}\n" in text
    assert f"docker push {images.CHANGED}" in text
    spark_options = f"-f {ROOT / 'Dockerfile.spark'} --build-arg BASE_IMAGE={images.SERVICES}"
    assert f"docker build --build-arg BASE_IMAGE=b {spark_options} -t {images.SPARK} {ROOT}\n" in text
    assert images.BROKER not in text  # the chart's image, which the cluster pulls
    calls.unlink()
    monkeypatch.setenv("IMAGE_LOAD", "load -q")
    monkeypatch.setenv("CONTAINER_TOOL", "buildah --root x")
    monkeypatch.setenv("PENSTOCK_IMAGE", "given:1")
    images.build()
    text = calls.read_text()
    assert f"buildah --root x push {images.CHANGED} docker-archive:" in text
    assert text.count("load -q /") == 3


def test_an_existing_cluster_is_neither_started_nor_stopped(tmp_path: Path, monkeypatch):
    program(tmp_path, "kubectl")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", "config")
    steps.Run().remove()
    assert (tmp_path / "calls").read_text().startswith(f"kubectl delete namespace {cluster.NAMESPACE}")
    names = [name for name, _ in steps.Run().steps()]
    assert names[:3] == ["build images", "namespace", "helm install"]
    assert not any("RDMA" in name for name in names)  # they need the stub device plugin of the script


def test_the_load_has_answers_to_compare():
    made = load.Load("127.0.0.1:1")
    made.sent = [
        (load.BEGIN_MS + i * 20, b'<http://x/1> <http://x/p> "%d"^^<%s> .' % (i, load._INTEGER.encode()))
        for i in range(1, 500)
    ]
    expected = made._expected()
    assert {name for name, _ in expected} == set(load.QUERIES)
    assert sum("room1" in content for content in expected.values()) > 5


def test_the_bulk_load_has_rows_to_compare():
    rows = spark.expected_rows()
    assert len(rows) == len(set(rows)) == spark._TRIPLES
    assert rows[0] == ("<http://x/0>", "<http://x/p0>", '"value 0"@en')


def test_values_of_the_test_are_values_of_the_chart():
    chart = yaml.safe_load((ROOT / "helm" / "penstock" / "values.yaml").read_text())
    for component, values in steps.VALUES.items():
        assert values.keys() <= chart[component].keys()
    assert spark.ADAPTOR["spark"].keys() <= chart["adaptor"]["spark"].keys()
    assert cluster.FULL_NAME == "ps-penstock"


def test_queries_of_the_load_have_other_names_than_those_of_the_trial():
    trial = yaml.safe_load((ROOT / "helm" / "penstock" / "examples" / "trial.yaml").read_text())
    assert not set(trial["queries"]) & set(load.QUERIES)
