"""Spark on the cluster: the adaptor with executors in pods, and a bulk load, each by the chart's values."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock
from tools.kubernetes import images
from tools.kubernetes.cluster import FULL_NAME, StepError, is_ready, kubectl, pods, wait

if TYPE_CHECKING:
    from penstock import Client

CLAIM, GRAPH, JOB, EXECUTORS = "penstock-shared", "http://x/loaded", "load", 2
ROWS = f"SELECT ?s ?p ?o {{ GRAPH <{GRAPH}> {{ ?s ?p ?o }} }}"
_TRIPLES, _LOAD_S = 20_000, 400.0
_SMALL = {  # of the node's two processors, the services need most
    "spark.executor.instances": str(EXECUTORS),
    "spark.executor.memory": "512m",
    "spark.kubernetes.executor.request.cores": "50m",
    "spark.kubernetes.executor.enableApiWatcher": "false",  # the etcd 3.4 of the script has no progress of watches
    "spark.kubernetes.executor.apiPollingInterval": "5s",  # Spark replaces only executors that a poll has seen
}
_RESOURCES = {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}
_MASTER = "k8s://https://kubernetes.default.svc"
ADAPTOR: dict[str, Any] = {
    "mode": "spark",
    "resources": _RESOURCES,
    "spark": {"image": images.values(images.SPARK), "master": _MASTER, "memory": "512m", "conf": _SMALL},
}
BULK_LOAD: dict[str, Any] = {
    "claim": CLAIM,
    "files": ["/shared/input/"],
    "graph": GRAPH,
    "image": images.values(images.SPARK),
    "master": _MASTER,
    "memory": "512m",
    "conf": _SMALL,
    "resources": _RESOURCES,
}


def make_claim() -> None:
    """Make the volume claim that stores, coordinators, drivers and executors share."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "claim.json")
        file.write_text(json.dumps(claim))
        kubectl("apply", "-f", str(file))


def running_executors() -> set[str]:
    """Return the names of the executors that are ready."""
    return {name for name, pod in pods("executor").items() if is_ready(pod)}


def kill_executor() -> str:
    """Kill an executor's pod, and wait until another one replaces it."""
    killed = min(running_executors())
    kubectl("delete", "pod", killed, "--grace-period=0", "--force")
    wait(lambda: len(running_executors() - {killed}) == EXECUTORS, f"{killed} is replaced")
    return killed


def triples() -> bytes:
    """Return the N-Triples of the bulk load, with an invalid line, which a load skips."""
    lines = [f'<http://x/{i % 5000}> <http://x/p{i % 7}> "value {i}"@en .' for i in range(_TRIPLES)]
    lines.insert(_TRIPLES // 2, "this is no triple")
    return "\n".join(lines).encode() + b"\n"


def bulk_load(client: Client) -> str:
    """Load a file by a Job of the chart's CronJob, and compare the graph with that of the embedded engine."""
    store = min(pods("store"))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "input").mkdir()
        Path(folder, "input", "triples.nt").write_bytes(triples())
        kubectl("cp", f"{folder}/input", f"{store}:/shared/")
    kubectl("create", "job", JOB, f"--from=cronjob/{FULL_NAME}-bulk-load")
    seen: set[str] = set()
    wait(lambda: _ended(seen), "the bulk load ends", _LOAD_S)
    log = kubectl("logs", f"job/{JOB}", "--tail=-1", check=False)
    if not _has("Complete"):
        raise StepError(f"the bulk load failed: {log[-1500:]}")
    if not seen:
        raise StepError("no pod of an executor was seen")
    wait(lambda: len(_rows(client)) >= _TRIPLES, "a query engine answers from the load")
    if _rows(client) != expected_rows():
        raise StepError("the query's answer differs from that of the embedded engine")
    kubectl("delete", "job", JOB)
    summary = next((line for line in log.splitlines() if "saved in" in line), "no summary")
    return f"{summary}; {len(seen)} executors; answers are equal"


def expected_rows() -> list[tuple[str, ...]]:
    """Return the rows that a query of the loaded graph has, by the embedded engine."""
    valid = b"".join(line for line in triples().splitlines(keepends=True) if line.startswith(b"<"))
    with penstock.Engine() as engine:
        engine.load(valid, graph=GRAPH, format="nt")
        return _sorted(engine.query(ROWS))


def _rows(client: Client) -> list[tuple[str, ...]]:
    return _sorted(client.query(ROWS))


def _sorted(answer: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(row[name].n3() for name in ("s", "p", "o")) for row in answer)


def _ended(seen: set[str]) -> bool:
    """Return whether the job has ended. Adds the executors that run to `seen`."""
    driver = max(pods("bulk-load"), default="")
    seen.update(
        name
        for name, pod in pods("executor").items()
        if is_ready(pod) and any(owner["name"] == driver for owner in pod["metadata"].get("ownerReferences", []))
    )
    return _has("Complete") or _has("Failed")


def _has(condition: str) -> bool:
    """Return whether the job has a condition."""
    status = json.loads(kubectl("get", "job", JOB, "-o", "json"))["status"]
    return any(each["type"] == condition and each["status"] == "True" for each in status.get("conditions", []))
