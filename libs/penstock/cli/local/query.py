"""`penstock query`: executes a one-shot query on a data directory. Prints the answer in a W3C format or as a table."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.local.display import short
from penstock.cli.local.explain import query_text
from penstock.engine import Engine, Solutions
from penstock.engine.answers.result_formats import boolean_json, boolean_xml, in_order
from penstock.query.parser import parse


class AnswerFormat(StrEnum):
    """Output format of an answer."""

    table = "table"
    json = "json"
    csv = "csv"
    tsv = "tsv"
    xml = "xml"


def query(
    text: Annotated[str, typer.Argument(metavar="QUERY", help="SPARQL text, or @file.")],
    data_dir: Annotated[Path, typer.Option(help="Data directory of the stored graph.")],
    answer_format: Annotated[AnswerFormat, typer.Option("--format", help="Output format.")] = AnswerFormat.table,
    timeout: Annotated[float | None, typer.Option(help="Time limit in seconds.")] = None,
) -> None:
    """Execute a one-shot query on a data directory and print the answer."""
    asked = query_text(text)
    parse(asked)  # an invalid query is a usage error, whatever the data
    with Engine(data_dir=data_dir, read_only=True) as engine:
        answer = engine.query(asked, timeout_s=timeout)
        if isinstance(answer, Solutions):
            if answer_format is AnswerFormat.table:
                print_solutions(answer)
            else:
                written = getattr(answer, f"to_{answer_format.value}")()
                sys.stdout.write(written if written.endswith("\n") else written + "\n")
        elif isinstance(answer, bool):
            print(boolean(answer, answer_format))
        else:
            sys.stdout.write(in_order(answer.serialize(format="nt")))


def boolean(answer: bool, answer_format: AnswerFormat) -> str:
    """Format the answer of an ASK as JSON or XML. For all other formats, return yes or no."""
    if answer_format is AnswerFormat.json:
        return boolean_json(answer)
    if answer_format is AnswerFormat.xml:
        return boolean_xml(answer)
    return "yes" if answer else "no"


def print_solutions(answer: Solutions) -> None:
    """Print a one-shot answer as a table, with all rows."""
    table = Table(*(f"?{name}" for name in answer.variables), show_edge=False, pad_edge=False)
    for solution in answer:
        table.add_row(*(short(solution[name]) if name in solution else "" for name in answer.variables))
    console = Console()
    if not console.is_terminal:
        console.width = 10_000
    console.print(table)
    print(f"{len(answer)} row{'' if len(answer) == 1 else 's'}")
