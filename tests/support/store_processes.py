"""Stores as processes, which tests start, kill and restart, in network namespaces if wanted."""

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

from penstock.remote.control_connection import Address

if TYPE_CHECKING:
    from collections.abc import Sequence

_WAIT_S = 60.0
_START_S = 300.0  # with the host's imports: a minute or two in the emulated machine of test-rdma


@dataclass(frozen=True, slots=True)
class Place:
    """Where a store runs: a network namespace (None: the test's own), and its address there."""

    namespace: str | None = None
    host: str = "127.0.0.1"


class StoreHost:
    """A process that forks stores (`support.store_host`)."""

    def __init__(self, namespace: str | None) -> None:
        entering = [] if namespace is None else ["ip", "netns", "exec", namespace]
        # It must have one thread when it forks, so numpy must not start more.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
        command = [*entering, sys.executable, "-m", "support.store_host"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._asking = threading.Lock()
        atexit.register(self.close)

    def start(self, **store: Any) -> dict[str, int]:
        """Start a store. Returns its process id and its port."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._asking:
            self._process.stdin.write(json.dumps(store).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], _START_S)[0]:
                raise TimeoutError(f"a store did not start within {_START_S:.0f} s")
            answer = json.loads(self._process.stdout.readline() or b"{}")
        if not answer:
            raise RuntimeError("a store did not start: the reason stands on stderr")
        return dict(answer)

    def close(self) -> None:
        """End the host with all its stores."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_WAIT_S)


_host = functools.cache(StoreHost)  # all tests share one host for each namespace


class StoreProcess:
    """One store. `start` after `kill` starts it again, empty, at the same port."""

    def __init__(self, directory: Path, shards: int, own: list[int], place: Place) -> None:
        self.own = own
        self._store: dict[str, Any] = {"directory": str(directory), "shards": shards, "own": own, "host": place.host}
        self._host = _host(place.namespace)
        self.address = Address(place.host, 0)
        self.start()

    def start(self) -> None:
        started = self._host.start(**self._store, port=self.address.port)
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
            raise TimeoutError("a store does not end")
        os.close(self._running)


class StoreProcesses:
    """Several stores, among which the shards of one graph are divided evenly."""

    def __init__(self, places: Sequence[Place] = (Place(),) * 3, shards: int = 6) -> None:
        base = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.shards = shards
        self._folder = Path(tempfile.mkdtemp(prefix="penstock-stores-", dir=base))
        self.processes = [
            StoreProcess(self._folder / f"store-{n}", shards, list(range(n, shards, len(places))), place)
            for n, place in enumerate(places)
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in self.processes:
            process.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
