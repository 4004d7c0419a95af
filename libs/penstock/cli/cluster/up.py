"""`penstock up`: starts a cluster on this machine, displays its state, and stops it. The services stop first, the
broker last.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

from rich.console import Console
from rich.table import Table

from penstock.broker import Broker
from penstock.cli.cluster.local_cluster import AdaptorKind, LocalCluster
from penstock.cli.cluster.prerequisites import Port, check_broker, check_extra, check_ports, lock_directory
from penstock.cli.signals import interrupted_by_signals

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.cli.cluster.supervisor import Supervised

_ALL_READY_S = 60.0
_PROBE_S, _PAUSE_S, _WATCH_S = 5.0, 0.2, 1.0
_COORDINATORS = 2

FIRST_EVENT = """\
{python} - <<'END'
import time
from penstock import Client

now = int(time.time() * 1000)
with Client("{bootstrap_servers}", url="{url}") as client:
    client.declare_stream("http://ex.org/hello", name="hello", timing="all")
    query = client.register(
        "REGISTER QUERY hello AS SELECT ?who ?says FROM STREAM <http://ex.org/hello> [RANGE 1s STEP 1s] "
        "WHERE {{ ?who <http://ex.org/says> ?says }}"
    )
    client.push("hello", '<http://ex.org/me> <http://ex.org/says> "hello" .', now)
    client.advance("hello", now + 1_000)
    for evaluation in query.poll(timeout_s=60):
        print(evaluation.time, [dict(row) for row in evaluation.answer])
END
"""


BROKER_PORT, COORDINATOR_PORT, ENGINE_PORT = 9092, 8081, 8091


@dataclass(frozen=True, slots=True)
class UpOptions:
    """Options of `penstock up`. A port of 0 means any free port. If a service has several processes, the port is for
    its first process. The other processes use the following ports.
    """

    directory: Path
    bootstrap_servers: str | None = None
    engines: int = 2
    adaptor: AdaptorKind = AdaptorKind.plain
    broker_port: int = BROKER_PORT
    coordinator_port: int = COORDINATOR_PORT
    engine_port: int = ENGINE_PORT


def up(options: UpOptions) -> None:
    """Run a cluster until Ctrl-C or SIGTERM. Starts a broker if none is given. PrerequisiteError if something that the
    cluster needs is missing.
    """
    _check(options)
    console = Console(highlight=False, soft_wrap=True)
    with suppress(KeyboardInterrupt), interrupted_by_signals(), ExitStack() as stack:
        stack.enter_context(lock_directory(options.directory))
        broker = _broker(options, console, stack)
        servers = options.bootstrap_servers or (broker.bootstrap_servers if broker else "")
        cluster = LocalCluster(
            servers,
            options.directory,
            coordinators=_COORDINATORS,
            engines=options.engines,
            adaptor=options.adaptor,
            coordinator_port=options.coordinator_port,
            engine_port=options.engine_port,
            report=lambda text: console.print(text, markup=False),
        )
        stack.callback(console.print, "stopping")
        console.print("starting the services")
        _show(stack.enter_context(cluster), broker, servers, console)
        while True:
            time.sleep(_WATCH_S)
            _watch_broker(broker, console)
            cluster.watch()


def _check(options: UpOptions) -> None:
    check_extra("cluster")
    if options.adaptor is AdaptorKind.spark:
        check_extra("spark")
    services = (
        ("coordinator", "--coordinator-port", options.coordinator_port, _COORDINATORS),
        ("engine", "--engine-port", options.engine_port, options.engines),
    )
    ports = [
        Port(first + i if first else 0, f"HTTP of {name}-{i}", option)
        for name, option, first, count in services
        for i in range(count)
    ]
    if options.bootstrap_servers is None:
        check_broker()
        ports.append(Port(options.broker_port, "the broker", "--broker-port"))
    check_ports(ports)


def _broker(options: UpOptions, console: Console, stack: ExitStack) -> Broker | None:
    if options.bootstrap_servers is not None:
        return None
    console.print("starting a Kafka broker")
    broker = Broker(options.directory.absolute() / "broker", port=options.broker_port)
    stack.callback(broker.stop)
    return broker.start()


def _watch_broker(broker: Broker | None, console: Console) -> None:
    if broker is not None and not broker.running:
        console.print(f"the broker ended; restarting it. Log: {broker.log_path}")
        broker.kill()
        broker.start()


def _show(cluster: LocalCluster, broker: Broker | None, bootstrap_servers: str, console: Console) -> None:
    """Display all addresses and first steps."""
    states = _states(cluster)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("service", "pid", "port", "health", "log"):
        table.add_column(column, overflow="fold" if column in ("health", "log") else "ellipsis", no_wrap=False)
    if broker is not None:
        table.add_row("broker", str(broker.pid), str(broker.port), "ready", str(broker.log_path))
    for name, service in cluster.services.items():
        pid = str(service.process.pid) if service.process else "-"
        port = str(_http_port(cluster, service) or "-")
        table.add_row(name, pid, port, states[name], str(cluster.supervisor.log_path(service)))
    console.print(table)
    first = FIRST_EVENT.format(python=shlex.quote(sys.executable), bootstrap_servers=bootstrap_servers, url=cluster.url)
    console.print(
        f"""
broker       {bootstrap_servers}
coordinators {cluster.url}
SPARQL       {cluster.sparql_url} (/sparql)

Push a first event and see its answer, from another terminal:

{first}
Topics, for any Kafka client: docs/kafka.md. Ctrl-C stops the cluster.""",
        markup=False,
    )


def _states(cluster: LocalCluster) -> dict[str, str]:
    """Return the health of each service. Waits until all services are ready, but at most `_ALL_READY_S` seconds."""
    deadline = time.monotonic() + _ALL_READY_S
    while True:
        found = {name: _state(cluster, service) for name, service in cluster.services.items()}
        if set(found.values()) == {"ready"} or time.monotonic() > deadline:
            return found
        cluster.watch()
        time.sleep(_PAUSE_S)


def _state(cluster: LocalCluster, service: Supervised) -> str:
    if not service.running:
        return "ended"
    port = _http_port(cluster, service)
    if port is None:
        return "starting"
    try:
        with urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=_PROBE_S):
            return "ready"
    except HTTPError as error:
        wrong = json.loads(error.read()).get("wrong", {})
        return "live, not ready: " + ", ".join(f"{check}: {reason}" for check, reason in wrong.items())
    except (OSError, ValueError):
        return "no response"


def _http_port(cluster: LocalCluster, service: Supervised) -> int | None:
    """Return the port of health and metrics, from the service's log."""
    for record in cluster.supervisor.records(service):
        if record.get("event") == "started" and "http_port" in record:
            return int(record["http_port"])
    return None
