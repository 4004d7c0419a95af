"""`penstock up`: all services of a small cluster on this machine, against a given or self-started broker.

Whatever dies is started again, as any supervisor would do it.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from rich.console import Console

from penstock.broker import Broker
from penstock.broker.ports import free_port
from penstock.errors import StorageError

if TYPE_CHECKING:
    from typing import Self

    from penstock.dataplane import Transport
    from penstock.query.planning.placement import Execution

_READY_S = 120.0
_STOP_S = 10.0
_WATCH_S = 1.0


class AdaptorKind(StrEnum):
    """Which adaptor makes tuples of events."""

    plain = "plain"
    spark = "spark"


@dataclass(slots=True)
class Supervised:
    """One service process: how it is started, and what it is now."""

    name: str
    module: str
    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0


@dataclass(slots=True)
class LocalCluster:
    """Processes of one cluster. Use it as a context manager; call `watch` now and then."""

    bootstrap_servers: str
    directory: Path
    dictionaries: int = 2
    coordinators: int = 2
    engines: int = 2
    stores: int = 2
    prefix: str = "penstock"
    shards: int = 4
    buckets: int = 8
    adaptor: AdaptorKind = AdaptorKind.plain
    transport: Transport = "auto"
    execution: Execution = "auto"
    services: dict[str, Supervised] = field(default_factory=dict)
    url: str = ""
    sparql_url: str = ""
    _regions: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        grpc, http, sparql = (
            [free_port() for _ in range(count)] for count in (self.dictionaries, self.coordinators, self.engines)
        )
        known = {"PENSTOCK_DICTIONARIES": ",".join(f"grpc://127.0.0.1:{port}" for port in grpc)}
        for i, port in enumerate(grpc):
            kept = {"PENSTOCK_DATA_DIR": str(self.directory / f"dictionary-{i}"), "PENSTOCK_CHECKPOINT_S": "5"}
            self._add(f"dictionary-{i}", "dictionary", kept | {"PENSTOCK_LISTEN": f"127.0.0.1:{port}"})
        for i, port in enumerate(http):
            self._add(f"coordinator-{i}", "coordinator", known | {"PENSTOCK_HTTP_PORT": str(port)})
        for i in range(self.stores):
            self._add(f"store-{i}", "store", known | self._of_stores())
        for i, port in enumerate(sparql):
            kept = {"PENSTOCK_DATA_DIR": str(self.directory / f"engine-{i}"), "PENSTOCK_CHECKPOINT_S": "5"}
            own = known | kept | self._of_graph() | {"PENSTOCK_HTTP_PORT": str(port)}
            self._add(f"engine-{i}", "query_engine", own)
        self._add_adaptor(known)
        self._add("dispatcher-0", "dispatcher", {})
        self.url = ",".join(f"http://127.0.0.1:{port}" for port in http)
        self.sparql_url = ",".join(f"http://127.0.0.1:{port}" for port in sparql)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.watch()
        self._wait_until_ready()
        return self

    @property
    def _secret(self) -> Path:
        return self.directory / "secret"

    def _of_graph(self) -> dict[str, str]:
        """Return settings of engines: they read stores, or hold the graph themselves where there are none."""
        if not self.stores:
            return {"PENSTOCK_GRAPH": "engine"}
        how = {"PENSTOCK_TRANSPORT": self.transport, "PENSTOCK_EXECUTION": self.execution}
        return {"PENSTOCK_SECRET_FILE": str(self._secret), **how}

    def _of_stores(self) -> dict[str, str]:
        """Return settings of stores: checkpoints where they can have each other's, regions in memory."""
        memory = Path("/dev/shm")  # noqa: S108
        if self._regions is None:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._secret.touch(0o600)
            self._secret.write_text(secrets.token_hex(32))
            self._regions = TemporaryDirectory(prefix="penstock-", dir=memory if memory.is_dir() else self.directory)
        return {
            "PENSTOCK_SECRET_FILE": str(self._secret),
            "PENSTOCK_REGIONS_DIR": self._regions.name,
            "PENSTOCK_DATA_DIR": str(self.directory / "shards"),
            "PENSTOCK_CHECKPOINT_S": "5",
        }

    def _add_adaptor(self, known: dict[str, str]) -> None:
        if self.adaptor is AdaptorKind.plain:
            self._add("adaptor-0", "adaptor", known)
            return
        own = {"PENSTOCK_CHECKPOINT": str((self.directory / "adaptor").absolute()), "PENSTOCK_SPARK_MASTER": "local[1]"}
        self._add("adaptor-0", "spark_adaptor", known | own)

    def _add(self, name: str, module: str, settings: dict[str, str]) -> None:
        common = {
            "PENSTOCK_BOOTSTRAP_SERVERS": self.bootstrap_servers,
            "PENSTOCK_PREFIX": self.prefix,
            "PENSTOCK_SHARDS": str(self.shards),
            "PENSTOCK_BUCKETS": str(self.buckets),
            "PENSTOCK_INSTANCE": name,
        }
        self.services[name] = Supervised(name, f"penstock.services.{module}", common | settings)

    def watch(self) -> None:
        """Start what is not running."""
        for service in self.services.values():
            if service.process is None or service.process.poll() is not None:
                with (self.directory / f"{service.name}.log").open("ab") as log:
                    command, settings = [sys.executable, "-m", service.module], os.environ | service.settings
                    service.process = subprocess.Popen(command, stdout=log, stderr=log, env=settings)  # noqa: S603
                service.starts += 1

    def kill(self, name: str) -> None:
        """End a service as a power failure would."""
        process = self.services[name].process
        assert process is not None, name
        process.send_signal(signal.SIGKILL)
        process.wait()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        while not any(_answers(f"{url}/streams") for url in self.url.split(",")):
            self.watch()
            if time.monotonic() > deadline:
                raise StorageError(f"no coordinator became active within {_READY_S} s: see {self.directory}")
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        running = [s.process for s in self.services.values() if s.process is not None]
        for process in running:
            process.terminate()
        deadline = time.monotonic() + _STOP_S
        for process in running:
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if self._regions is not None:
            self._regions.cleanup()


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=2.0):  # noqa: S310
            return True
    except (URLError, ConnectionError, TimeoutError, OSError):
        return False


def up(directory: Path, bootstrap_servers: str | None, engines: int, adaptor: AdaptorKind) -> None:
    """Run a cluster until Ctrl-C, with a broker of its own where none is given."""
    console = Console(highlight=False)
    with ExitStack() as stack:
        if bootstrap_servers is None:
            bootstrap_servers = stack.enter_context(Broker(directory / "broker")).bootstrap_servers
        cluster = stack.enter_context(LocalCluster(bootstrap_servers, directory, engines=engines, adaptor=adaptor))
        console.print(f"broker       {bootstrap_servers}")
        console.print(f"coordinators {cluster.url}")
        console.print(f"SPARQL       {cluster.sparql_url} (/sparql)")
        console.print("Ctrl-C ends it.")
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(_WATCH_S)
                cluster.watch()
