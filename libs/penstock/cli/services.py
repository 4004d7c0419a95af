"""`penstock adaptor|dispatcher|dictionary|coordinator|store|query-engine`: one service's process, as containers run it.

Everything but the kind of adaptor is said by PENSTOCK_*. The modules of services need the extra `cluster`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

PANEL = "Services of a cluster (settings by PENSTOCK_*: docs/operations.md)"
SERVICES = {
    "dictionary": "Gives ids to terms. Of several, one is active.",
    "dispatcher": "Owns event time: closes batches and deals them out to shards. The one started last is active.",
    "coordinator": "Takes declarations, queries and stored data, over HTTP and by topic. Of several, one is active.",
    "store": "Holds its share of the stored graph's shards, in shared memory and for the data plane.",
    "query-engine": "Evaluates its share of the standing queries, answers /sparql.",
}


def add_services(app: typer.Typer) -> None:
    """Add a command for each."""
    app.command("adaptor", rich_help_panel=PANEL)(adaptor)
    for name, meaning in SERVICES.items():
        app.command(name, help=meaning, rich_help_panel=PANEL)(_runner(f"{name.replace('-', '_')}.service"))


def adaptor(
    *, spark: Annotated[bool, typer.Option("--spark", help="On Spark; also what spark-submit is given.")] = False
) -> int:
    """Makes tuples of events: by itself, or on Spark."""
    return _runner("adaptor.spark" if spark else "adaptor.service")()


def _runner(name: str) -> Callable[[], int]:
    def run_service() -> int:
        module = import_module(f"penstock.services.{name}")
        code: int = module.main()
        return code

    return run_service
