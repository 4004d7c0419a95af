"""The `penstock` command: options, exit codes, errors."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli import demo as demo_command
from penstock.cli import explain as explain_command
from penstock.cli import run as run_command
from penstock.cli import serve as serve_command
from penstock.cli import up as up_command
from penstock.cli.display import answer_table, short
from penstock.cli.explain import query_text
from penstock.cli.services import add_services
from penstock.cli.spark_load import SparkOptions, load_cluster
from penstock.cli.spark_load import load as spark_load
from penstock.cli.up import AdaptorKind
from penstock.engine import Engine, Solutions
from penstock.engine.formats import boolean_json, boolean_xml, in_order
from penstock.errors import PenstockError, QueryError
from penstock.query.parser import parse

FINE, FAILED, USAGE = 0, 1, 2

_UsageError: Any = typer.BadParameter.__mro__[1]  # click's, or typer's own copy of it in later versions

app = typer.Typer(
    help="Continuous SPARQL over RDF streams and the stored graph that they keep changing.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class AnswerFormat(StrEnum):
    """How a one-shot answer is written."""

    table = "table"
    json = "json"
    csv = "csv"
    tsv = "tsv"
    xml = "xml"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 0 fine, 1 the work failed, 2 wrong usage or a query error."""
    try:
        code = app(args=arguments, standalone_mode=False)
    except typer.Abort:
        return FINE
    except _UsageError as error:
        error.show()
        return USAGE
    except QueryError as error:
        print(f"query error: {error}", file=sys.stderr)
        return USAGE
    except (PenstockError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return FINE
    return code if isinstance(code, int) else FINE


@app.command("demo-cluster")
def demo_cluster(
    hours: Annotated[float, typer.Option(help="Hours of the recorded day.")] = 12.0,
    kills: Annotated[int, typer.Option(help="Processes to kill on the way.")] = 6,
    seed: Annotated[int | None, typer.Option(help="Which ones are killed when; none = a new one.")] = None,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor makes tuples of events.")] = AdaptorKind.plain,
) -> int:
    """The recorded day through Kafka and a cluster whose processes are killed; checks every result."""
    from penstock.cli.demo_cluster import demo_cluster as run_demo  # noqa: PLC0415 - needs the cluster extra

    return FINE if run_demo(hours=hours, kills=kills, seed=seed, adaptor=adaptor).good else FAILED


@app.command()
def up(
    directory: Annotated[Path, typer.Argument(help="Where logs and checkpoints are kept.")],
    bootstrap_servers: Annotated[str | None, typer.Option(help="A Kafka broker; none = one is started.")] = None,
    engines: Annotated[int, typer.Option(help="Query engines.")] = 2,
    adaptor: Annotated[AdaptorKind, typer.Option(help="Which adaptor makes tuples of events.")] = AdaptorKind.plain,
) -> None:
    """All services of a small cluster on this machine, until Ctrl-C."""
    up_command.up(directory, bootstrap_servers, engines, adaptor)


@app.command("adaptor")
def run_adaptor(
    *, spark: Annotated[bool, typer.Option("--spark", help="On Spark; also what spark-submit is given.")] = False
) -> int:
    """The adaptor's process alone, settings by PENSTOCK_* (docs/operations.md)."""
    if spark:
        from penstock.services import spark_adaptor  # noqa: PLC0415 - needs the extras cluster and spark

        return spark_adaptor.main()
    from penstock.services import adaptor  # noqa: PLC0415 - needs the extra cluster

    return adaptor.main()


@app.command()
def demo(
    seconds: Annotated[float, typer.Option(help="Stop after so many seconds; 0 = at the end of the day.")] = 20.0,
    speed: Annotated[float, typer.Option(help="Seconds of the recorded day a second.")] = 1800.0,
    *,
    plain: Annotated[bool, typer.Option("--plain", help="Lines of text instead of a live screen.")] = False,
) -> None:
    """Standing queries over a recorded day of Aarhus: car parks, roads, and what the city knows of them."""
    demo_command.demo(seconds=seconds, speed=speed, plain=plain)


@app.command()
def load(
    files: Annotated[list[str], typer.Argument(help="RDF files; .gz by name. With --spark any Hadoop path or glob.")],
    data_dir: Annotated[Path | None, typer.Option(help="Where the stored graph is kept.")] = None,
    graph: Annotated[str | None, typer.Option(help="Named graph to load into.")] = None,
    syntax: Annotated[str | None, typer.Option("--format", help="Of all files; otherwise by their names.")] = None,
    *,
    cluster: Annotated[
        str | None, typer.Option(help="--spark: a cluster's coordinators, in place of a folder.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Load in parallel by Spark.")] = False,
    max_bad: Annotated[int, typer.Option(help="--spark: bad lines to pass over before the load fails.")] = 1_000,
    bad_lines: Annotated[Path | None, typer.Option(help="--spark: where they go (bad-lines.jsonl).")] = None,
    staging: Annotated[str | None, typer.Option(help="--spark: folder for stages, of any Hadoop file system.")] = None,
    master: Annotated[str | None, typer.Option(help="--spark: Spark's master (local[*]).")] = None,
    memory: Annotated[str, typer.Option(help="--spark: memory of its driver.")] = "2g",
    conf: Annotated[list[str] | None, typer.Option(help="--spark: a setting of Spark's, key=value.")] = None,
) -> None:
    """Load files into the stored graph of a data directory, or of a cluster."""
    console = Console(stderr=True)
    options = SparkOptions(graph, syntax, max_bad, staging, bad_lines, master, memory, tuple(conf or ()))
    if (data_dir is None) == (cluster is None) or (cluster is not None and not spark):
        raise typer.BadParameter("either --data-dir, or --spark with --cluster")
    if cluster is not None:
        print(load_cluster(files, cluster, options, console))
    elif data_dir is not None and spark:
        print(spark_load(files, data_dir, options, console))
    elif data_dir is not None:
        _load([Path(file) for file in files], data_dir, graph, syntax, console)


def _load(files: list[Path], data_dir: Path, graph: str | None, syntax: str | None, console: Console) -> None:
    total = sum(file.stat().st_size for file in files)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
    )
    with (
        Engine(data_dir=data_dir) as engine,
        Progress(*columns, console=console, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task("loading", total=max(total, 1))
        triples, seconds = 0, 0.0
        for file in files:
            bar.update(task, description=file.name)
            report = engine.load(file, graph=graph, format=syntax)
            triples, seconds = triples + report.triples, seconds + report.seconds
            bar.advance(task, file.stat().st_size)
    rate = f", {triples / seconds:,.0f} a second" if seconds > 0 else ""
    print(f"{triples:,} triples from {len(files)} file{'' if len(files) == 1 else 's'} in {seconds:.2f} s{rate}")


@app.command()
def query(
    text: Annotated[str, typer.Argument(metavar="QUERY", help="SPARQL text, or @file.")],
    data_dir: Annotated[Path, typer.Option(help="Where the stored graph is kept.")],
    answer_format: Annotated[
        AnswerFormat, typer.Option("--format", help="How the answer is written.")
    ] = AnswerFormat.table,
    timeout: Annotated[float | None, typer.Option(help="Give up after so many seconds.")] = None,
) -> None:
    """Ask once."""
    asked = query_text(text)
    parse(asked)  # a bad query is a usage error, whatever the data
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
    """An ASK's answer, in the W3C's form where there is one."""
    if answer_format is AnswerFormat.json:
        return boolean_json(answer)
    if answer_format is AnswerFormat.xml:
        return boolean_xml(answer)
    return "yes" if answer else "no"


def print_solutions(answer: Solutions) -> None:
    """A one-shot answer as a table, whole."""
    from rich.table import Table  # noqa: PLC0415 - only this command draws one

    table = Table(*(f"?{name}" for name in answer.variables), show_edge=False, pad_edge=False)
    for solution in answer:
        table.add_row(*(short(solution[name]) if name in solution else "" for name in answer.variables))
    console = Console()
    if not console.is_terminal:
        console.width = 10_000
    console.print(table)
    print(f"{len(answer)} row{'' if len(answer) == 1 else 's'}")


app.command("run")(run_command.run)
app.command("explain")(explain_command.explain)
app.command("serve")(serve_command.serve)
add_services(app)


__all__ = ["answer_table", "app", "main"]
