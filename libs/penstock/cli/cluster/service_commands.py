"""`penstock adaptor|dispatcher|dictionary|coordinator|store|query-engine`: runs one service process. Containers run the
same commands.

The kind of adaptor is an option of the command. All other settings are PENSTOCK_* variables. The services need the
extra `cluster`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

PANEL = "Services of a cluster (settings: PENSTOCK_* variables, docs/operations.md)"
SERVICES = {
    "dictionary": "Assigns ids to terms. One instance is active, the others are on standby.",
    "dispatcher": "Owns event time: closes batches and distributes them to shards. The latest instance is active.",
    "coordinator": "Accepts declarations, queries and stored data, over HTTP and by topic. One instance is active.",
    "store": "Holds some of the stored graph's shards in shared memory, and serves them over the data plane.",
    "query-engine": "Evaluates some of the standing queries, and serves /sparql.",
}


def add_services(app: typer.Typer) -> None:
    """Add a command for each service."""
    app.command("adaptor", rich_help_panel=PANEL)(adaptor)
    for name, meaning in SERVICES.items():
        app.command(name, help=meaning, rich_help_panel=PANEL)(_runner(f"{name.replace('-', '_')}.service"))


def adaptor(
    *,
    spark: Annotated[
        bool, typer.Option("--spark", help="Run on Spark; also the entry point for spark-submit.")
    ] = False,
) -> int:
    """Converts events to tuples, as a plain process or on Spark."""
    return _runner("adaptor.spark" if spark else "adaptor.service")()


def _runner(name: str) -> Callable[[], int]:
    def run_service() -> int:
        module = import_module(f"penstock.services.{name}")
        code: int = module.main()
        return code

    return run_service
