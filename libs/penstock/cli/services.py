"""`penstock dispatcher|dictionary|coordinator|store|query-engine`: one service's process, as containers run it.

`penstock adaptor` is beside the other commands: it has options. Everything else is said by PENSTOCK_*.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import typer

SERVICES = {
    "dictionary": "Gives ids to terms. Of several, one is active.",
    "dispatcher": "Owns event time: closes batches and deals them out to shards. The one started last is active.",
    "coordinator": "Takes declarations, queries and stored data, over HTTP and by topic. Of several, one is active.",
    "store": "Holds its share of the stored graph's shards, in shared memory and for the data plane.",
    "query-engine": "Evaluates its share of the standing queries, answers /sparql.",
}


def add_services(app: typer.Typer) -> None:
    """Add a command for each."""
    for name, meaning in SERVICES.items():
        app.command(name, help=f"{meaning} Settings by PENSTOCK_* (docs/operations.md).")(_runner(name))


def _runner(name: str) -> Callable[[], int]:
    def run_service() -> int:
        module = import_module(f"penstock.services.{name.replace('-', '_')}")  # needs the extra cluster
        code: int = module.main()
        return code

    return run_service
