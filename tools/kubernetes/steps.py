"""The steps of the test, in order."""

from __future__ import annotations

import base64
import json
import re
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from penstock import Client
from tools.kubernetes import images, readme, spark
from tools.kubernetes.cluster import (
    FULL_NAME,
    NAMESPACE,
    RELEASE,
    ROOT,
    StepError,
    existing,
    forwarded,
    is_ready,
    kube,
    kubectl,
    pods,
    read,
    ready,
    wait,
)
from tools.kubernetes.load import NAME, Load

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[], str | None]

CHART = ROOT / "helm" / "penstock"
BROKER_PORT = 19094
RESOURCE = "rdma/hca_shared_devices_a"
VALUES: dict[str, Any] = {  # added to examples/trial.yaml: second instances of the services whose pods are killed
    "image": images.values(images.SERVICES),
    "kafka": {
        "embedded": {
            "localPort": BROKER_PORT,
            **({} if images.broker_is_given() else {"image": images.values(images.BROKER)}),
        }
    },
    "dictionary": {"replicas": 2},
    "coordinator": {"replicas": 2},
    "store": {"replicas": 2},
    "bulkLoad": spark.BULK_LOAD,
}
_INSTALL_S, _ROLL_S, _SETTLE_S = 300.0, 300.0, 5.0
_CAUGHT_UP = 1_000  # records, 20 seconds of the load


class Run:
    """One run of the test, with the state that its steps share."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._values = json.loads(json.dumps(VALUES))
        self._load: Load | None = None
        self._broker = ""

    def steps(self) -> list[tuple[str, Step]]:
        """Return the steps with their names."""
        here = not existing()
        prepare: list[tuple[str, Step]] = [
            ("build Kubernetes", lambda: kube("build", limit_s=3600.0) and None),
            ("build images", images.build),
            ("cluster up", self._up),
        ]
        rdma: list[tuple[str, Step]] = [  # with the stub device plugin of the script
            ("RDMA pods wait for a device", self._rdma_pending),
            ("RDMA pods run with the device plugin", self._rdma_running),
        ]
        return [
            *(prepare if here else [("build images", images.build), ("namespace", self._namespace)]),
            ("helm install", self._install),
            ("helm test", self._test),
            ("the README's lines", readme.produced_and_consumed),
            ("every coordinator answers", self._coordinators),
            ("load from the host", self._begin),
            ("kill a store pod", lambda: self._kill("store", 2)),
            ("kill a query engine pod", lambda: self._kill("query-engine", 1)),
            ("kill the active coordinator's pod", self._kill_coordinator),
            ("scale query engines 1 to 3", lambda: self._scale(3)),
            ("scale query engines 3 to 1", lambda: self._scale(1)),
            ("upgrade to a changed image", self._upgrade),
            ("a changed secret restarts pods", self._rotate),
            ("the adaptor on Spark, executors in pods", self._adaptor_on_spark),
            ("kill an executor of Spark", spark.kill_executor),
            ("bulk load by Spark", self._bulk_load),
            ("the plain adaptor again", self._plain_adaptor),
            *(rdma if here else []),
            ("results: lost, doubled, different", self._verdict),
            ("helm uninstall", self._uninstall),
        ]

    def close(self) -> None:
        """Stop the processes on this machine."""
        self._open.close()

    def remove(self) -> None:
        """Stop the cluster, or remove the namespace of the test from an existing one."""
        if existing():
            kube("kubectl", "delete", "namespace", NAMESPACE, "--ignore-not-found", check=False)
        else:
            kube("down", check=False)

    # ---- install
    def _up(self) -> None:
        kube("up", limit_s=900.0)
        kube("plugin", "stop")  # of an earlier run with --keep
        wait(lambda: not _devices(), "the node has no devices", 60.0)
        self._namespace()

    def _namespace(self) -> None:
        kubectl("create", "namespace", NAMESPACE, check=False)
        spark.make_claim()

    def _helm(self, verb: str, *arguments: str, limit_s: float = _INSTALL_S) -> str:
        return kube("helm", verb, RELEASE, *arguments, "-n", NAMESPACE, limit_s=limit_s + 30)

    def _apply(self, verb: str, *arguments: str) -> None:
        """Install or upgrade with the current values."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "values.json")
            file.write_text(json.dumps(self._values))
            example = CHART / "examples" / "trial.yaml"
            self._helm(verb, str(CHART), "-f", str(example), "-f", str(file), *arguments)

    def _install(self) -> None:
        self._apply("install", "--wait", "--timeout", f"{_INSTALL_S:.0f}s")

    def _test(self) -> None:
        self._helm("test", "--timeout", "200s")

    def _token(self) -> str:
        secret = json.loads(kubectl("get", "secret", f"{FULL_NAME}-tokens", "-o", "json"))
        return base64.b64decode(secret["data"]["admin-token"]).decode()

    def _coordinators(self) -> str:
        headers = {"authorization": f"Bearer {self._token()}"}
        answers = {}
        for name in pods("coordinator"):
            with forwarded(f"pod/{name}", 8080) as port:
                response = httpx.get(f"http://127.0.0.1:{port}/streams", headers=headers, timeout=20)
                refused = httpx.get(f"http://127.0.0.1:{port}/streams", timeout=20)
            answers[name] = response.status_code, refused.status_code
        if set(answers.values()) != {(200, 401)}:
            raise StepError(f"with and without a token: {answers}")
        return f"{len(answers)} of {len(answers)}: 200, without a token 401"

    # ---- load
    def _begin(self) -> str:
        port = self._open.enter_context(forwarded(f"pod/{FULL_NAME}-kafka-0", BROKER_PORT, BROKER_PORT))
        http = self._open.enter_context(forwarded(f"service/{FULL_NAME}-coordinator", 8080))
        self._broker = f"localhost:{port}"
        with Client(self._broker, url=f"http://127.0.0.1:{http}", token=self._token()) as client:
            self._load = Load(self._broker)
            self._load.prepare(client)
        self._load.start()
        time.sleep(_SETTLE_S)
        return f"stream {NAME}, {len(self._load.sent)} events so far"

    def _kill(self, component: str, count: int, name: str | None = None) -> str:
        """Kill a pod of a component, by default the last one, and wait until `count` pods are ready."""
        name = name or max(pods(component))
        before = pods(component)[name]["metadata"]["uid"]
        kubectl("delete", "pod", name, "--grace-period=0", "--force")
        wait(
            lambda: ready(component, count) and all(p["metadata"]["uid"] != before for p in pods(component).values()),
            f"{name} is replaced",
        )
        time.sleep(_SETTLE_S)
        return name

    def _kill_coordinator(self) -> str:
        active = [name for name in pods("coordinator") if self._is_active(name)]
        if len(active) != 1:
            raise StepError(f"active coordinators: {active}")
        self._kill("coordinator", 2, active[0])
        wait(lambda: any(map(self._is_active, pods("coordinator"))), "another coordinator is active")
        return active[0]

    def _is_active(self, name: str) -> bool:
        """Return whether a pod's metrics say that it is the active coordinator."""
        with forwarded(f"pod/{name}", 8080) as port:
            metrics = self._metrics(port)
        return any(line.startswith("penstock_active") and line.endswith(" 1.0") for line in metrics.splitlines())

    def _metrics(self, port: int) -> str:
        headers = {"authorization": f"Bearer {self._token()}"}
        return httpx.get(f"http://127.0.0.1:{port}/metrics", headers=headers, timeout=20).text

    def _scale(self, engines: int) -> None:
        self._values["queryEngine"] = {"replicas": engines}
        self._apply("upgrade", "--wait", "--timeout", f"{_ROLL_S:.0f}s")
        wait(lambda: ready("query-engine", engines), f"{engines} query engines")
        time.sleep(_SETTLE_S)

    def _upgrade(self) -> str:
        self._values["image"]["tag"] = images.CHANGED.split(":")[1]
        self._apply("upgrade", "--wait", "--timeout", f"{_ROLL_S:.0f}s")
        components = ("adaptor", "coordinator", "dictionary", "dispatcher", "query-engine", "store")
        wait(lambda: all(_runs(component, images.CHANGED) for component in components), "all pods run the new image")
        time.sleep(_SETTLE_S)
        return f"{sum(len(pods(component)) for component in components)} pods"

    def _rotate(self) -> str:
        """A changed Secret of the stores restarts stores and query engines, and nothing else."""
        before = {name: pod["metadata"]["uid"] for name, pod in _all_pods().items()}
        secret = base64.b64encode(f"another secret {time.time()}".encode()).decode()
        kubectl("patch", "secret", f"{FULL_NAME}-secret", "-p", json.dumps({"data": {"secret": secret}}))
        self._apply("upgrade", "--wait", "--timeout", f"{_ROLL_S:.0f}s")
        changed = {name for name, pod in _all_pods().items() if before.get(name) != pod["metadata"]["uid"]}
        expected = {*pods("store"), *pods("query-engine")}
        if changed != expected:
            raise StepError(f"restarted: {sorted(changed)}, expected: {sorted(expected)}")
        time.sleep(_SETTLE_S)
        return ", ".join(sorted(changed))

    # ---- Spark
    def _adaptor_on_spark(self) -> str:
        self._values["adaptor"] = spark.ADAPTOR
        before = self._sent()
        self._apply("upgrade", "--wait", "--timeout", f"{_ROLL_S:.0f}s")
        wait(lambda: len(spark.running_executors()) == spark.EXECUTORS, "Spark's executors run")
        taken = self._adaptor_count("events")
        wait(lambda: self._adaptor_count("events") > taken, "the adaptor on Spark takes events")
        wait(lambda: self._adaptor_count("lag_records") < _CAUGHT_UP, "the adaptor on Spark catches up")
        return f"{spark.EXECUTORS} executors; {self._sent() - before} events sent meanwhile"

    def _plain_adaptor(self) -> str:
        taken = self._adaptor_count("events")
        del self._values["adaptor"]
        self._apply("upgrade", "--wait", "--timeout", f"{_ROLL_S:.0f}s")
        wait(lambda: not pods("executor"), "Spark's executors are gone")
        wait(lambda: self._adaptor_count("lag_records") < _CAUGHT_UP, "the plain adaptor catches up")
        return f"the adaptor on Spark took {taken} events"

    def _bulk_load(self) -> str:
        with (
            forwarded(f"service/{FULL_NAME}-query-engine", 8080) as engines,
            Client(self._broker, sparql_url=f"http://127.0.0.1:{engines}", token=self._token()) as client,
        ):
            return spark.bulk_load(client)

    def _sent(self) -> int:
        assert self._load is not None
        return len(self._load.sent)

    def _adaptor_count(self, metric: str) -> int:
        """Return the sum of a metric of the adaptor over its labels."""
        [name] = [name for name, pod in pods("adaptor").items() if is_ready(pod)]
        with forwarded(f"pod/{name}", 8080) as port:
            lines = self._metrics(port).splitlines()
        return sum(
            int(float(line.split()[-1])) for line in lines if re.match(rf"penstock_{metric}(_total)?[ {{]", line)
        )

    # ---- RDMA
    def _rdma_pending(self) -> str:
        self._values["rdma"] = {"enabled": True, "resourceName": RESOURCE}
        self._apply("upgrade")
        wait(lambda: any(_is_refused(pod) for pod in pods("store").values()), "a store pod is Pending")
        time.sleep(_SETTLE_S)
        [reason] = {_is_refused(pod) for pod in pods("store").values()} - {""}
        return reason

    def _rdma_running(self) -> str:
        kube("plugin", f"{RESOURCE}=8")
        wait(lambda: ready("store", 2) and ready("query-engine", 1), "stores and engine run with the device", _ROLL_S)
        wait(lambda: all(map(_has_device, [*pods("store").values(), *pods("query-engine").values()])), "all rolled")
        time.sleep(_SETTLE_S)
        return "2 stores and 1 query engine have the device; reads use TCP, because it is a stub"

    # ---- end
    def _verdict(self) -> str:
        assert self._load is not None
        self._load.end()
        found = self._load.verdict()
        text = f"{len(self._load.sent)} events, {found.expected} results: {found.lost} lost, {found.doubled} doubled, "
        text += f"{found.different} different"
        if not found.good:
            raise StepError(text)
        return text

    def _uninstall(self) -> str:
        self.close()
        self._helm("uninstall", "--wait", "--timeout", "120s")
        wait(lambda: not _all_pods(), "all pods are gone", 120.0)
        claims = [claim["metadata"]["name"] for claim in read("persistentvolumeclaims")]
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        return f"{len(claims)} claims remain"


def _all_pods() -> dict[str, dict[str, Any]]:
    found = {pod["metadata"]["name"]: pod for pod in read("pods")}
    return {
        name: pod for name, pod in found.items() if pod["metadata"]["labels"]["app.kubernetes.io/component"] != "test"
    }


def _runs(component: str, image: str) -> bool:
    return all(is_ready(pod) and pod["spec"]["containers"][0]["image"] == image for pod in pods(component).values())


def _is_refused(pod: dict[str, Any]) -> str:
    """Return the scheduler's message if it cannot place a pod because the device is missing, else an empty string."""
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False" and RESOURCE in condition["message"]:
            return str(condition["message"]).split(".", maxsplit=1)[0]
    return ""


def _devices() -> int:
    """Return how many devices the node offers."""
    nodes = json.loads(kube("kubectl", "get", "nodes", "-o", "json"))["items"]
    return sum(int(node["status"]["allocatable"].get(RESOURCE, 0)) for node in nodes)


def _has_device(pod: dict[str, Any]) -> bool:
    return RESOURCE in pod["spec"]["containers"][0]["resources"].get("limits", {})
