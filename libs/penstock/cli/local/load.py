"""`penstock load`: loads files into the stored graph of a data directory, or into a cluster with Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.cli.local.map_messages import mapping_settings
from penstock.cli.local.spark_load import SparkOptions, load_cluster
from penstock.cli.local.spark_load import load as spark_load
from penstock.client.service_requests import Credentials
from penstock.engine import Engine


def load(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="RDF files, or data files of a mapping; .gz files are unpacked. With --spark any Hadoop path or glob. "
            "Without files, an RML mapping names them."
        ),
    ] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Data directory of the stored graph.")] = None,
    graph: Annotated[str | None, typer.Option(help="Named graph to load into.")] = None,
    syntax: Annotated[str | None, typer.Option("--format", help="Format of all files; default: by file name.")] = None,
    mapping: Annotated[
        Path | None,
        typer.Option(
            help="Mapping of files in JSON, NDJSON, CSV or Parquet: RML in Turtle (.ttl), CONSTRUCT (.rq), or JSON: "
            "the `mapping` of a declaration, or a document with an @context."
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None, typer.Option(help="--spark: URLs of a cluster's coordinators, instead of --data-dir.")
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Load in parallel with Spark.")] = False,
    max_bad: Annotated[
        int, typer.Option(help="--spark: maximum number of bad lines to skip before the load fails.")
    ] = 1_000,
    bad_lines: Annotated[
        Path | None, typer.Option(help="--spark: file for bad lines; default: bad-lines.jsonl.")
    ] = None,
    staging: Annotated[str | None, typer.Option(help="--spark: staging folder on any Hadoop file system.")] = None,
    master: Annotated[str | None, typer.Option(help="--spark: Spark master; default: local[*].")] = None,
    memory: Annotated[str, typer.Option(help="--spark: memory of the driver.")] = "2g",
    conf: Annotated[list[str] | None, typer.Option(help="--spark: a Spark setting, key=value.")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="--cluster: file that contains a token of role admin.")
    ] = None,
    ca: Annotated[Path | None, typer.Option(help="--cluster: CA (PEM) of the coordinators' certificates.")] = None,
) -> None:
    """Load files into the stored graph of a data directory or a cluster."""
    console = Console(stderr=True)
    if (data_dir is None) == (cluster is None) or (cluster is not None and not spark):
        raise typer.BadParameter("use either --data-dir, or --spark with --cluster")
    files = files or []
    if not files and (mapping is None or spark):
        raise typer.BadParameter("give at least one file")
    settings = None if mapping is None else mapping_settings(mapping)
    options = SparkOptions(graph, syntax, max_bad, staging, bad_lines, master, memory, tuple(conf or ()), settings)
    if cluster is not None:
        token = None if token_file is None else token_file.read_text(encoding="utf-8").strip()
        credentials = Credentials(token, None if ca is None else str(ca))
        print(load_cluster(files, cluster, options, console, credentials))
    elif data_dir is not None and spark:
        print(spark_load(files, data_dir, options, console))
    elif data_dir is not None:
        sources = [Path(file) for file in files] if mapping is None or files else [mapping.parent]
        _load(sources, data_dir, graph, syntax, settings, console)


def _load(
    files: list[Path],
    data_dir: Path,
    graph: str | None,
    syntax: str | None,
    mapping: dict[str, Any] | None,
    console: Console,
) -> None:
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
        triples, seconds, done = 0, 0.0, 0

        def shown(read: int, _: int) -> None:
            bar.update(task, completed=done + read)

        for file in files:
            bar.update(task, description=file.name)
            report = engine.load(file, graph=graph, format=syntax, mapping=mapping, progress=shown)
            triples, seconds, done = triples + report.triples, seconds + report.seconds, done + file.stat().st_size
            shown(0, 0)
    rate = f", {triples / seconds:,.0f} per second" if seconds > 0 else ""
    print(f"{triples:,} triples from {len(files)} file{'' if len(files) == 1 else 's'} in {seconds:.2f} s{rate}")
