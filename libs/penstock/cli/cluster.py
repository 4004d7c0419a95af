"""`penstock up` and `penstock demo-cluster`: their options. What they need comes with the extra `cluster`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from penstock.cli.exit_codes import FAILED, FINE
from penstock.cli.up import AdaptorKind
from penstock.cli.up import up as start_all

PANEL = "A cluster"


def add_commands(app: typer.Typer) -> None:
    """Add the commands, in a part of `--help` of their own."""
    app.command("up", rich_help_panel=PANEL)(up)
    app.command("demo-cluster", rich_help_panel=PANEL)(demo_cluster)


def up(
    directory: Annotated[Path, typer.Argument(help="Where logs and checkpoints are kept.")],
    bootstrap_servers: Annotated[str | None, typer.Option(help="A Kafka broker; none = one is started.")] = None,
    engines: Annotated[int, typer.Option(help="Query engines.")] = 2,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor makes tuples of events.")] = AdaptorKind.plain,
) -> None:
    """All services of a small cluster on this machine, until Ctrl-C."""
    start_all(directory, bootstrap_servers, engines, adaptor)


def demo_cluster(
    hours: Annotated[float, typer.Option(help="Hours of the recorded day.")] = 12.0,
    kills: Annotated[int, typer.Option(help="Processes to kill on the way.")] = 6,
    seed: Annotated[int | None, typer.Option(help="Which ones are killed when; none = a new one.")] = None,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor makes tuples of events.")] = AdaptorKind.plain,
) -> int:
    """The recorded day through Kafka and a cluster whose processes are killed; checks every result."""
    from penstock.cli.demo_cluster import demo_cluster as run_demo  # noqa: PLC0415 - needs the cluster extra

    return FINE if run_demo(hours=hours, kills=kills, seed=seed, adaptor=adaptor).good else FAILED
