"""`penstock explain`: displays the plan of any query, one-shot or standing, without executing it."""

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
    """Return the text of a query. `argument`: the text itself, or @file."""
    if argument.startswith("@"):
        return Path(argument[1:]).read_text(encoding="utf-8")
    return argument


def explain(
    text: Annotated[str, typer.Argument(metavar="QUERY", help="SPARQL text, or @file.")],
    data_dir: Annotated[Path | None, typer.Option(help="Plan with the statistics of this stored graph.")] = None,
    base: Annotated[str | None, typer.Option(help="Base IRI for relative names in the query.")] = None,
) -> None:
    """Show the plan of a query. Streams and graphs that do not exist are assumed to be empty."""
    asked = query_text(text)
    with Engine(data_dir=data_dir, read_only=data_dir is not None) as engine:
        statement = parse(asked, base)
        if isinstance(statement, ContinuousQuery) and statement.continuous:
            _supply(engine, statement)
        print(engine.explain(asked, base))


def _supply(engine: Engine, query: ContinuousQuery) -> None:
    """Declare the streams of a standing query. For each graph of the query, declare a stream that absorbs into this
    graph, because the planner refuses a graph that does not exist.
    """
    for clause in query.windows:
        if clause.stream not in engine.streams:
            engine.declare_stream(clause.stream, timing=())
    for number, graph in enumerate(stored_graphs(query)):
        if graph.value not in engine.streams:  # a stream used as a graph is an error, reported by the planner
            engine.declare_stream(f"{_FILLER}{number}", absorb_into=graph.value, timing=())
