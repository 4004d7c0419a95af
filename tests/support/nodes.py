"""Store nodes as processes of this machine, for tests: started, killed, started again."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import Any, Self

from penstock.node import Address, Nodes
from penstock.node.serving import start_node

SECRET = b"the secret of the tests' nodes"
_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload(["penstock.node.serving", "support.nodes"])


def _run(directory: str, shards: int, own: list[int], port: int, ready: Any) -> None:
    server = start_node(Path(directory), shards, own, SECRET, port=port)
    signal.signal(signal.SIGTERM, lambda *_: server.close())
    ready.send(server.address.port)
    ready.close()
    server.run()


class NodeProcess:
    """One node; `start` after `kill` brings it back at the same port, empty."""

    def __init__(self, directory: Path, shards: int, own: list[int]) -> None:
        self._arguments = str(directory), shards, own
        self.port = 0
        self.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def start(self) -> None:
        here, there = _FORK.Pipe(duplex=False)
        self._process = _FORK.Process(target=_run, args=(*self._arguments, self.port, there), daemon=True)
        self._process.start()
        there.close()
        if not here.poll(60):
            raise TimeoutError("a node did not start")
        self.port = here.recv()

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self._process.join()

    def stop(self) -> None:
        self._process.terminate()
        self._process.join(5)
        if self._process.is_alive():
            self.kill()


class NodeCluster:
    """Some nodes that share the shards of one store evenly."""

    def __init__(self, nodes: int = 3, shards: int = 6) -> None:
        base = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-nodes-", dir=base))
        self.processes = [
            NodeProcess(self._folder / f"node-{n}", shards, list(range(n, shards, nodes))) for n in range(nodes)
        ]

    def open(self, **settings: Any) -> Nodes:
        """Connect an engine's side."""
        return Nodes([Address("127.0.0.1", process.port) for process in self.processes], SECRET, **settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self.processes:
            process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
