"""`penstock explain`: the plan of any query, one-shot or standing, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.engine import Engine
from penstock.query.ir import ContinuousQuery
from penstock.query.parser import parse
from penstock.query.resolve import stored_graphs

_FILLER = "urn:x-penstock:explain/"


def query_text(argument: str) -> str:
    """A query given as text, or as @file."""
    if argument.startswith("@"):
        return Path(argument[1:]).read_text(encoding="utf-8")
    return argument


def explain(
    text: Annotated[str, typer.Argument(metavar="QUERY", help="SPARQL text, or @file.")],
    data_dir: Annotated[Path | None, typer.Option(help="Plan with this stored graph's counts.")] = None,
    base: Annotated[str | None, typer.Option(help="Base IRI for bare names in the query.")] = None,
) -> None:
    """Show the plan of a query. What it names and the data do not have is taken as there, and empty."""
    asked = query_text(text)
    with Engine(data_dir=data_dir, read_only=data_dir is not None) as engine:
        statement = parse(asked, base)
        if isinstance(statement, ContinuousQuery) and statement.continuous:
            _supply(engine, statement)
        print(engine.explain(asked, base))


def _supply(engine: Engine, query: ContinuousQuery) -> None:
    """Declare the streams that a standing query names; its graphs are there once some stream absorbs into them."""
    for clause in query.windows:
        if clause.stream not in engine.streams:
            engine.declare_stream(clause.stream, timing=())
    for number, graph in enumerate(stored_graphs(query)):
        if graph.value not in engine.streams:  # that is an error, and told as one
            engine.declare_stream(f"{_FILLER}{number}", absorb_into=graph.value, timing=())
