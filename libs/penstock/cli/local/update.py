"""`penstock update`: executes a SPARQL Update on a data directory."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from penstock.cli.local.explain import query_text
from penstock.engine import Engine
from penstock.query.parser import parse
from penstock.query.resolve import as_update
from penstock.query.supported_updates import check_supported


def update(
    text: Annotated[str, typer.Argument(metavar="UPDATE", help="SPARQL Update text, or @file.")],
    data_dir: Annotated[Path, typer.Option(help="Data directory of the stored graph.")],
    base: Annotated[str | None, typer.Option(help="Base IRI for relative names in the update.")] = None,
    load_directory: Annotated[Path | None, typer.Option(help="Directory of the files that LOAD may read.")] = None,
) -> None:
    """Execute a SPARQL Update on a data directory, as one snapshot."""
    asked = query_text(text)
    parsed = as_update(parse(asked, base))  # an invalid update is a usage error, whatever the data
    if load_directory is None:
        check_supported(parsed)
    with Engine(data_dir=data_dir, load_directory=load_directory) as engine:
        report = engine.update(asked, base)
    counts = ((report.removed, "removed"), (report.added, "added"))
    print(", ".join(f"{n:,} triple{'' if n == 1 else 's'} {what}" for n, what in counts if n) or "no change")
