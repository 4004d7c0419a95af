"""`penstock up` and `penstock demo-cluster`: their options. What they need comes with the extra `cluster`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated, Any

import typer

from penstock.cli.exit_codes import FAILED, FINE
from penstock.cli.local import BROKER_PORT, COORDINATOR_PORT, ENGINE_PORT, UpOptions
from penstock.cli.local import up as run_cluster
from penstock.cli.prerequisites import check_broker, check_extra
from penstock.cli.quarantine import quarantine
from penstock.cli.up import AdaptorKind

PANEL = "A cluster"


def add_commands(app: typer.Typer) -> None:
    """Add the commands, in a part of `--help` of their own."""
    app.command("up", rich_help_panel=PANEL)(up)
    app.command("demo-cluster", rich_help_panel=PANEL)(demo_cluster)
    app.command("quarantine", rich_help_panel=PANEL)(quarantine)


def _port(what: str) -> Any:
    return typer.Option(min=0, max=65_535, help=f"Port {what}; 0 = any free one.")


def up(
    directory: Annotated[Path, typer.Argument(help="Where logs and checkpoints are kept.")],
    bootstrap_servers: Annotated[str | None, typer.Option(help="A Kafka broker; none = one is started.")] = None,
    engines: Annotated[int, typer.Option(min=1, help="Query engines.")] = 2,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor makes tuples of events.")] = AdaptorKind.plain,
    broker_port: Annotated[int, _port("of the broker that is started")] = BROKER_PORT,
    coordinator_port: Annotated[int, _port("of the first coordinator's HTTP")] = COORDINATOR_PORT,
    engine_port: Annotated[int, _port("of the first engine's HTTP")] = ENGINE_PORT,
) -> None:
    """All services of a small cluster on this machine, until Ctrl-C."""
    run_cluster(UpOptions(directory, bootstrap_servers, engines, adaptor, broker_port, coordinator_port, engine_port))


def demo_cluster(
    hours: Annotated[float, typer.Option(help="Hours of the recorded day.")] = 12.0,
    kills: Annotated[int, typer.Option(help="Processes to kill on the way.")] = 6,
    seed: Annotated[int | None, typer.Option(help="Which ones are killed when; none = a new one.")] = None,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor makes tuples of events.")] = AdaptorKind.plain,
) -> int:
    """The recorded day through Kafka and a cluster whose processes are killed; checks every result."""
    check_extra("cluster")
    check_broker()
    from penstock.cli.demo_cluster import demo_cluster as run_demo  # noqa: PLC0415 - needs the cluster extra

    return FINE if run_demo(hours=hours, kills=kills, seed=seed, adaptor=adaptor).good else FAILED
