"""The list of the commands that run or administer a cluster, and the options of `penstock up` and `penstock
demo-cluster`. The commands need the extra `cluster`.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated, Any

import typer

from penstock.cli.cluster.access_lists import acls
from penstock.cli.cluster.certificate_files import certificates
from penstock.cli.cluster.doctor import doctor
from penstock.cli.cluster.local_cluster import AdaptorKind
from penstock.cli.cluster.prerequisites import check_broker, check_extra
from penstock.cli.cluster.quarantine import quarantine
from penstock.cli.cluster.up import BROKER_PORT, COORDINATOR_PORT, ENGINE_PORT, UpOptions
from penstock.cli.cluster.up import up as run_cluster
from penstock.cli.exit_codes import FAILED, FINE

PANEL = "A cluster"


def add_commands(app: typer.Typer) -> None:
    """Add the commands, in a separate section of `--help`."""
    app.command("up", rich_help_panel=PANEL)(up)
    app.command("demo-cluster", rich_help_panel=PANEL)(demo_cluster)
    app.command("quarantine", rich_help_panel=PANEL)(quarantine)
    app.command("certificates", rich_help_panel=PANEL)(certificates)
    app.command("acls", rich_help_panel=PANEL)(acls)
    app.command("doctor", rich_help_panel=PANEL)(doctor)


def _port(what: str) -> Any:
    return typer.Option(min=0, max=65_535, help=f"Port {what}; 0 = any free port.")


def up(
    directory: Annotated[Path, typer.Argument(help="Directory for logs and checkpoints.")],
    bootstrap_servers: Annotated[
        str | None, typer.Option(help="Kafka bootstrap servers; default: start a broker.")
    ] = None,
    engines: Annotated[int, typer.Option(min=1, help="Query engines.")] = 2,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor converts events to tuples.")] = AdaptorKind.plain,
    broker_port: Annotated[int, _port("of the started broker")] = BROKER_PORT,
    coordinator_port: Annotated[int, _port("of the first coordinator's HTTP API")] = COORDINATOR_PORT,
    engine_port: Annotated[int, _port("of the first engine's HTTP API")] = ENGINE_PORT,
) -> None:
    """Run all services of a small cluster on this machine until Ctrl-C."""
    run_cluster(UpOptions(directory, bootstrap_servers, engines, adaptor, broker_port, coordinator_port, engine_port))


def demo_cluster(
    hours: Annotated[float, typer.Option(help="Hours of the recorded day to replay.")] = 12.0,
    kills: Annotated[int, typer.Option(help="Number of processes to kill during the replay.")] = 6,
    seed: Annotated[int | None, typer.Option(help="Seed of the kill schedule; default: random.")] = None,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor converts events to tuples.")] = AdaptorKind.plain,
) -> int:
    """Replay hours of a recorded day through Kafka and a cluster while killing processes, and verify every result."""
    check_extra("cluster")
    check_broker()
    from penstock.cli.cluster.demo_cluster import demo_cluster as run_demo  # noqa: PLC0415 - needs the cluster extra

    return FINE if run_demo(hours=hours, kills=kills, seed=seed, adaptor=adaptor).good else FAILED
