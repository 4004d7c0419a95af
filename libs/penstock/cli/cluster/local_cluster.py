"""A small cluster on this machine. All services run as processes, and use a given broker."""

from __future__ import annotations

import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen

from penstock.broker.ports import free_port
from penstock.cli.cluster.regions import regions_folder
from penstock.cli.cluster.supervisor import Supervised, Supervisor
from penstock.errors import StorageError
from penstock.private_files import make_directory

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

    from penstock.query.planning.cost.placement import Execution
    from penstock.remote import Transport

__all__ = ["AdaptorKind", "LocalCluster", "Supervised"]

_READY_S = 120.0
_PROBE_S = 2.0


class AdaptorKind(StrEnum):
    """Which adaptor converts events to tuples."""

    plain = "plain"
    spark = "spark"


@dataclass(slots=True)
class LocalCluster:
    """The processes of a cluster. Use it as a context manager and call `watch` regularly."""

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
    coordinator_port: int = 0
    engine_port: int = 0
    report: Callable[[str], None] | None = None
    url: str = ""
    sparql_url: str = ""
    supervisor: Supervisor = field(init=False)
    _regions: Path | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.directory, self.report)

    @property
    def services(self) -> dict[str, Supervised]:
        """The service processes by name."""
        return self.supervisor.services

    def __enter__(self) -> Self:
        make_directory(self.directory)
        with self._stack:  # a failed start stops the services started so far
            self._regions = self._stack.enter_context(regions_folder(self.directory))
            self._stack.callback(self.supervisor.stop)
            self._start()
            self._stack = self._stack.pop_all()
        return self

    def _start(self) -> None:
        self._secret.touch(0o600)
        self._secret.write_text(secrets.token_hex(32))
        grpc = [free_port() for _ in range(self.dictionaries)]
        http, sparql = _ports(self.coordinator_port, self.coordinators), _ports(self.engine_port, self.engines)
        known = {"PENSTOCK_DICTIONARIES": ",".join(f"grpc://127.0.0.1:{port}" for port in grpc)}
        for i, port in enumerate(grpc):
            directory_settings = {
                "PENSTOCK_DATA_DIR": str(self.directory / f"dictionary-{i}"),
                "PENSTOCK_CHECKPOINT_S": "5",
            }
            self._add(f"dictionary-{i}", "dictionary", directory_settings | {"PENSTOCK_LISTEN": f"127.0.0.1:{port}"})
        for i, port in enumerate(http):
            self._add(f"coordinator-{i}", "coordinator", known | {"PENSTOCK_HTTP_PORT": str(port)})
        for i in range(self.stores):
            self._add(f"store-{i}", "store", known | self._of_stores())
        for i, port in enumerate(sparql):
            directory_settings = {
                "PENSTOCK_DATA_DIR": str(self.directory / f"engine-{i}"),
                "PENSTOCK_CHECKPOINT_S": "5",
            }
            own = known | directory_settings | self._of_graph() | {"PENSTOCK_HTTP_PORT": str(port)}
            self._add(f"engine-{i}", "query_engine", own)
        self._add_adaptor(known)
        self._add("dispatcher-0", "dispatcher", {})
        self.url = ",".join(f"http://127.0.0.1:{port}" for port in http)
        self.sparql_url = ",".join(f"http://127.0.0.1:{port}" for port in sparql)
        self.watch()
        self._wait_until_ready()

    @property
    def _secret(self) -> Path:
        return self.directory / "secret"

    def _of_graph(self) -> dict[str, str]:
        """Return the settings of the query engines. If the cluster has stores, the query engines read the stored graph
        from the stores. Otherwise each query engine holds the whole graph.
        """
        if not self.stores:
            return {"PENSTOCK_GRAPH": "engine"}
        how = {"PENSTOCK_TRANSPORT": self.transport, "PENSTOCK_EXECUTION": self.execution}
        return {"PENSTOCK_SECRET_FILE": str(self._secret), **how}

    def _of_stores(self) -> dict[str, str]:
        """Return the settings of the stores: checkpoints on shared storage, regions in memory."""
        return {
            "PENSTOCK_SECRET_FILE": str(self._secret),
            "PENSTOCK_REGIONS_DIR": str(self._regions),
            "PENSTOCK_DATA_DIR": str(self.directory / "shards"),
            "PENSTOCK_CHECKPOINT_S": "5",
        }

    def _add_adaptor(self, known: dict[str, str]) -> None:
        if self.adaptor is AdaptorKind.plain:
            self._add("adaptor-0", "adaptor", known)
            return
        own = {"PENSTOCK_CHECKPOINT": str((self.directory / "adaptor").absolute()), "PENSTOCK_SPARK_MASTER": "local[1]"}
        self._add("adaptor-0", "adaptor.spark", known | own)

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
        """Start services that are not running (see `Supervisor.watch`)."""
        self.supervisor.watch()

    def kill(self, name: str) -> None:
        """Kill a service without a graceful shutdown (SIGKILL)."""
        self.supervisor.kill(name)

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        while not any(_answers(f"{url}/streams") for url in self.url.split(",")):
            self.watch()
            if time.monotonic() > deadline:
                raise StorageError(f"no coordinator became active within {_READY_S} s: see {self.directory}")
            time.sleep(0.2)

    def __exit__(self, *_: object) -> None:
        """Stop the services, then remove the regions."""
        self._stack.close()


def _ports(first: int, count: int) -> list[int]:
    return [first + i if first else free_port() for i in range(count)]


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=_PROBE_S):  # noqa: S310
            return True
    except (URLError, ConnectionError, TimeoutError, OSError):
        return False
