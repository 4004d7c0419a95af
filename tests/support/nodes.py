"""Store nodes as processes, for tests: started, killed, started again; in network namespaces where asked for."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.node import Address, Nodes
from penstock.remote import PlaneLimits
from support.node_host import RDMA_DEVICES, SECRET

if TYPE_CHECKING:
    from collections.abc import Sequence

_WAIT_S = 60.0
_START_S = 300.0  # the first waits for its host's imports too: a minute or two in the emulated machine of test-rdma


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node runs: a network namespace (None: the test's own), and its address there."""

    namespace: str | None = None
    host: str = "127.0.0.1"


class NodeHost:
    """A process that forks nodes (`support.node_host`)."""

    def __init__(self, namespace: str | None) -> None:
        entering = [] if namespace is None else ["ip", "netns", "exec", namespace]
        # One thread until it forks: so numpy must not start any.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
        command = [*entering, sys.executable, "-m", "support.node_host"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._asking = threading.Lock()
        atexit.register(self.close)

    def start(self, **node: Any) -> dict[str, int]:
        """Start a node; returns its process id and its port."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps(node).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], _START_S)[0]:
                raise TimeoutError(f"a node did not start within {_START_S:.0f} s")
            answer = json.loads(self._process.stdout.readline() or b"{}")
        if not answer:
            raise RuntimeError("a node did not start: the reason stands on stderr")
        return dict(answer)

    def close(self) -> None:
        """End it with all its nodes."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_WAIT_S)


_host = functools.cache(NodeHost)  # all tests share them


class NodeProcess:
    """One node; `start` after `kill` brings it back at the same port, empty or with its last checkpoint."""

    def __init__(
        self, directory: Path, shards: int, own: list[int], place: Place, checkpoints: Path | None = None
    ) -> None:
        self._node: dict[str, Any] = {"directory": str(directory), "shards": shards, "own": own, "host": place.host}
        if checkpoints is not None:
            self._node["checkpoints"] = str(checkpoints)
        self._host = _host(place.namespace)
        self.address = Address(place.host, 0)
        self.start()

    def start(self) -> None:
        started = self._host.start(**self._node, port=self.address.port)
        self.pid = started["pid"]
        self._running = os.pidfd_open(self.pid)
        self.address = Address(self.address.host, started["port"])

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._end(_WAIT_S)

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        try:
            self._end(5)
        except TimeoutError:
            self.kill()

    def _end(self, seconds: float) -> None:
        if not select.select([self._running], [], [], seconds)[0]:
            raise TimeoutError("a node does not end")
        os.close(self._running)


class NodeCluster:
    """Some nodes that share the shards of one store evenly; with `durable` they keep checkpoints."""

    def __init__(self, places: Sequence[Place] = (Place(),) * 3, shards: int = 6, *, durable: bool = False) -> None:
        base = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-nodes-", dir=base))
        self.processes = [
            NodeProcess(
                self._folder / f"node-{n}",
                shards,
                list(range(n, shards, len(places))),
                place,
                self._folder / f"checkpoints-{n}" if durable else None,
            )
            for n, place in enumerate(places)
        ]

    def open(self, **settings: Any) -> Nodes:
        """Connect an engine's side. By RDMA it waits longer: soft-RoCE runs in an emulated machine."""
        if settings.get("transport") == "rdma":
            settings |= {"lease_ms": 60_000, "limits": PlaneLimits(20_000, 60_000), "rdma_device": RDMA_DEVICES[-1]}
        return Nodes([process.address for process in self.processes], SECRET, **settings)

    def forget(self, node: int) -> None:
        """Throw away the checkpoints of a node that does not run."""
        shutil.rmtree(self._folder / f"checkpoints-{node}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self.processes:
            process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
