"""The commands of the cluster, and of the release that is tested. The cluster is the one that KUBECONFIG names, or a
Kubernetes of one node on this machine.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_KUBE_SH = ROOT.parent / "shared" / "k8s" / "kube.sh"
NAMESPACE, RELEASE = "penstock-test", "ps"
FULL_NAME = f"{RELEASE}-penstock"
_LOOK_S = 0.5


class StepError(Exception):
    """A step of the test has failed. The message says why."""


def existing() -> bool:
    """Return whether the test uses a cluster that is there, which KUBECONFIG names."""
    return bool(os.environ.get("KUBECONFIG"))


def missing() -> list[str]:
    """Return what this machine lacks for the test."""
    if existing():
        return [] if shutil.which("kubectl") else ["kubectl on PATH"]
    script = kube_sh()
    wrong = []
    if not os.access(script, os.X_OK):
        wrong.append(f"{script}: the script that runs Kubernetes here (KUBE_SH names it), or KUBECONFIG of a cluster")
    if os.geteuid() != 0:
        wrong.append("root: network namespaces, mounts and containers need it")
    if not sys.platform.startswith("linux"):
        wrong.append("Linux")
    if not shutil.which("go") and not (directory() / "bin" / "kubelet").exists():
        wrong.append("go: it builds Kubernetes")
    return wrong


def kube_sh() -> Path:
    """Return the path of the script that runs Kubernetes on this machine."""
    return Path(os.environ.get("KUBE_SH") or DEFAULT_KUBE_SH)


def directory() -> Path:
    """Return the folder of programs, images and logs of the cluster."""
    return Path(os.environ.get("KUBE_DIR") or ROOT / "build" / "kube")


def command(program: str, *arguments: str | Path) -> list[str]:
    """Return the command line of `kubectl` or `helm`, or of another command of the script."""
    if not existing():
        return [str(kube_sh()), program, *map(str, arguments)]
    found = shutil.which(program) or str(ROOT / "tools" / "helm.sh")  # which brings Helm where there is none
    return [found, *map(str, arguments)]


def environment() -> dict[str, str]:
    """Return the environment of these commands."""
    return os.environ | {"KUBE_DIR": str(directory())}


def kube(program: str, *arguments: str | Path, limit_s: float = 600.0, check: bool = True) -> str:
    """Run `command` and return its standard output. StepError with the end of its output if it fails."""
    return run(command(program, *arguments), limit_s, check)


def run(line: list[str], limit_s: float = 600.0, check: bool = True) -> str:
    """Run a command line and return its standard output. StepError with the end of its output if it fails."""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit_s, check=False, env=environment())
    except subprocess.TimeoutExpired as error:
        raise StepError(f"{' '.join(line[:4])} takes longer than {limit_s:g} s") from error
    if check and done.returncode != 0:
        raise StepError(f"{' '.join(line[:4])}: {(done.stdout + done.stderr)[-1500:].strip()}")
    return done.stdout


def kubectl(*arguments: str, check: bool = True) -> str:
    """Run kubectl in the namespace of the test."""
    return kube("kubectl", "-n", NAMESPACE, *arguments, check=check)


def read(kind: str, *arguments: str) -> list[dict[str, Any]]:
    """Return the resources of a kind."""
    found: list[dict[str, Any]] = json.loads(kubectl("get", kind, "-o", "json", *arguments))["items"]
    return found


def pods(component: str) -> dict[str, dict[str, Any]]:
    """Return the pods of a component by name."""
    found = read("pods", "-l", f"app.kubernetes.io/component={component}")
    return {pod["metadata"]["name"]: pod for pod in found}


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a pod is ready and not being deleted."""
    conditions = pod["status"].get("conditions", [])
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]


def stacks() -> str:
    """Return the end of the log of each container that is not ready, with the stacks of its threads (SIGUSR1)."""
    found = []
    for pod in read("pods"):
        if is_ready(pod) or pod["status"]["phase"] != "Running":
            continue
        name = pod["metadata"]["name"]
        kubectl("exec", name, "--", "bash", "-c", "kill -USR1 1", check=False)  # tini passes it on
        time.sleep(_LOOK_S)
        found.append(f"\n{name}:\n{kubectl('logs', name, '--tail=200', check=False)}")
    return "".join(found)


def ready(component: str, count: int) -> bool:
    """Return whether a component has exactly `count` pods, all of them ready."""
    found = pods(component).values()
    return len(found) == count and all(map(is_ready, found))


def wait(condition: Callable[[], bool], what: str, limit_s: float = 180.0) -> None:
    """Wait until a condition holds. StepError after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise StepError(f"not within {limit_s:g} s: {what}")
        time.sleep(_LOOK_S)


def free_port() -> int:
    """Return a port of this machine that nothing uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


@contextmanager
def forwarded(target: str, remote: int, local: int | None = None) -> Iterator[int]:
    """Forward a port of this machine to one of a pod or service. Yields the port. `kubectl port-forward` ends with its
    pod, so it is started again until the end of the context.
    """
    port, ended = local or free_port(), threading.Event()
    line = command("kubectl", "-n", NAMESPACE, "port-forward", target, f"{port}:{remote}")
    running: list[subprocess.Popen[bytes]] = []

    def run() -> None:
        while not ended.is_set():
            started = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
            running[:] = [started]
            started.wait()
            ended.wait(_LOOK_S)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        wait(lambda: _listens(port), f"a forwarded port of {target}", 30.0)
        yield port
    finally:
        ended.set()
        for process in running:
            process.terminate()
        thread.join(5.0)


def _listens(port: int) -> bool:
    with socket.socket() as client:
        client.settimeout(1.0)
        return client.connect_ex(("127.0.0.1", port)) == 0
