"""`penstock run`: runs standing queries over recorded streams."""

from __future__ import annotations

import math
import sys
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from penstock.cli.local.display import answer_table, clock, size
from penstock.cli.local.finishing import finish
from penstock.cli.local.member_tables import MemberTables, Report, shown
from penstock.cli.local.recording import Recording, replay
from penstock.engine import Engine, Step
from penstock.engine.answers.json_lines import json_line
from penstock.errors import DataError, QueryError
from penstock.query.parser import declared_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.engine import Evaluation, Query, QuerySet


ALL = "all"


class RunFormat(StrEnum):
    """Output format of evaluations."""

    table = "table"
    jsonl = "jsonl"


def recordings_of(options: Sequence[str]) -> list[Recording]:
    """Parse `IRI=FILE` options. The IRI can contain '='."""
    found = []
    for option in options:
        iri, _, path = option.rpartition("=")
        if not iri or not path:
            raise typer.BadParameter(f"--stream expects IRI=FILE, not {option!r}")
        found.append(Recording(iri, path))
    return found


def of_streams(options: Sequence[str], flag: str, streams: Sequence[str]) -> list[tuple[str, str]]:
    """Parse `IRI=VALUE` options of known streams."""
    found = []
    for option in options:
        iri = next((iri for iri in streams if option.startswith(f"{iri}=")), None)
        if iri is None or option == f"{iri}=":
            raise typer.BadParameter(f"{flag} expects IRI=VALUE with the IRI of a --stream, not {option!r}")
        found.append((iri, option[len(iri) + 1 :]))
    return found


def timings(options: Sequence[str], streams: Sequence[str]) -> dict[str, list[str] | str]:
    """Return the timing predicates of each stream: a list, or "all"."""
    named: dict[str, list[str]] = {iri: [] for iri in streams}
    for iri, value in of_streams([option for option in options if option != ALL], "--timing", streams):
        named[iri] += [predicate for predicate in value.split(",") if predicate]
    return {iri: ALL if ALL in (*options, *predicates) else predicates for iri, predicates in named.items()}


def data_files(options: Sequence[str] | None) -> list[tuple[str | None, str]]:
    """Parse `[GRAPH=]FILE` options as (graph, file)."""
    out: list[tuple[str | None, str]] = []
    for option in options or ():
        graph, separator, path = option.rpartition("=")
        out.append((graph, path) if separator and ":" in graph and not Path(option).exists() else (None, option))
    return out


def trigger(speed: str) -> float | None:
    """Parse a speed in seconds of event time per second. Returns None for "max", which means as fast as possible."""
    with suppress(ValueError):
        if speed == "max":
            return None
        if 0 < (rate := float(speed)) < math.inf:
            return rate
    raise typer.BadParameter(f"--speed expects a positive number or max, not {speed!r}")


def run(
    queries: Annotated[list[Path], typer.Argument(metavar="QUERY.rq...", help="Files of standing queries.")],
    stream: Annotated[
        list[str], typer.Option(help="IRI=FILE with lines `TIMESTAMP_MS <s> <p> <o> .`; - = standard input.")
    ],
    data: Annotated[list[str] | None, typer.Option(help="[GRAPH=]FILE to load first.")] = None,
    timing: Annotated[
        list[str] | None, typer.Option(help="IRI=PREDICATE,..., IRI=all, or all: tuples that are not stored.")
    ] = None,
    absorb: Annotated[list[str] | None, typer.Option(help="IRI=GRAPH that the stream absorbs into.")] = None,
    batch: Annotated[int, typer.Option(help="Batch interval in ms.")] = 100,
    lateness: Annotated[int, typer.Option(help="Allowed lateness in ms.")] = 0,
    base: Annotated[str | None, typer.Option(help="Base IRI for relative names in queries.")] = None,
    speed: Annotated[str, typer.Option(help="Seconds of event time per second, or max.")] = "max",
    output: Annotated[RunFormat, typer.Option("--format", help="Output format.")] = RunFormat.table,
    parameters: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE with the members of a query set: .csv, .json, .jsonl or .arrow.")
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option(help="NAME=COLUMN,... that identify a member; the parameters otherwise.")
    ] = None,
    report: Annotated[Report, typer.Option(help="Which members of query sets report at an instant.")] = Report.change,
    changes: Annotated[
        bool,
        typer.Option("--changes", help="With --format jsonl: what answers gain and lose in place of whole answers."),
    ] = False,
) -> None:
    """Run standing queries over recorded streams and print every evaluation."""
    if changes and output is not RunFormat.jsonl:
        raise typer.BadParameter("--changes needs --format jsonl")
    recordings = recordings_of(stream)
    streams = list(dict.fromkeys(recording.stream for recording in recordings))
    tables = MemberTables(parameters or (), key or (), report)
    rate, predicates = trigger(speed), timings(timing or (), streams)
    graphs = dict(of_streams(absorb or (), "--absorb", streams))
    with Engine() as engine:
        for graph, path in data_files(data):
            engine.load(path, graph=graph)
        for iri in streams:
            warn_of_storage(iri, timing, graphs)
            engine.declare_stream(
                iri,
                batch_ms=batch,
                lateness_ms=lateness,
                timing=predicates[iri],
                absorb_into=graphs.get(iri),
                max_ahead_ms=1 << 52,  # the recording's clock is independent of the wall clock
            )
        standing = register_all(engine, queries, base, changes=changes, tables=tables)
        tables.check_used()
        printer = Printer(output, changes=changes)

        def after_step(_: int) -> bool:
            for query in standing:
                for evaluation in query.poll():
                    printer.show(evaluation)
            return True

        replay(engine, recordings, speed=rate, after_step=after_step, lateness_ms=lateness)
        finish(engine, standing, printer.show)
        report_refusals(engine, streams)


def warn_of_storage(iri: str, timing: Sequence[str] | None, graphs: Mapping[str, str]) -> None:
    """Warn if neither --timing nor --absorb names a stream. All events of such a stream are stored."""
    stated = timing is not None and any(option == ALL or option.startswith(f"{iri}=") for option in timing)
    if not stated and iri not in graphs:
        print(f"warning: stream <{iri}> has no --timing: every event is stored as well", file=sys.stderr)


def register_all(
    engine: Engine,
    paths: Sequence[Path],
    base: str | None,
    *,
    changes: bool = False,
    tables: MemberTables | None = None,
) -> list[Query | QuerySet]:
    """Register the files' queries. A query that publishes a stream is registered before the queries that read the
    stream, independently of the order of the files. `changes`: see `Engine.register`. `tables`: the members of query
    sets.
    """
    found: dict[Path, Query | QuerySet] = {}
    waiting = list(dict.fromkeys(paths))
    while waiting:
        refused: list[Path] = []
        for path in waiting:
            try:
                found[path] = register(engine, path, base, changes=changes, tables=tables)
            except QueryError:
                refused.append(path)
        if len(refused) == len(waiting):
            with named(refused[0]):
                register(engine, refused[0], base, changes=changes, tables=tables)
        waiting = refused
    return [found[path] for path in dict.fromkeys(paths)]


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Print the name of the query's file before an error of the query."""
    try:
        yield
    except QueryError:
        print(f"{path}:", file=sys.stderr)
        raise


def register(
    engine: Engine, path: Path, base: str | None, *, changes: bool = False, tables: MemberTables | None = None
) -> Query | QuerySet:
    """Register a file. Warnings contain the file name."""
    text = path.read_text(encoding="utf-8")
    query: Query | QuerySet
    if tables is not None and declared_parameters(text, base, engine.limits):
        query = tables.register(engine, text, base)
    else:
        query = engine.register(text, base=base, changes=changes)
    for warning in query.warnings:
        print(f"{path}: warning: {warning}", file=sys.stderr)
    return query


class Printer:
    """Writes evaluations to standard output."""

    def __init__(self, output: RunFormat, *, changes: bool = False) -> None:
        """`output` chooses JSON lines or tables. `changes`: lines of query sets that report changes have added and
        removed rows in place of answers.
        """
        self._output, self._changes = output, changes
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console.width = 200

    def show(self, result: Evaluation | Step) -> None:
        """Write one evaluation. For a step of a query set, write the evaluations of the members that report."""
        if isinstance(result, Step):
            for key, evaluation in result.evaluations():
                self._show(evaluation, key)
        else:
            self._show(result)

    def _show(self, evaluation: Evaluation, member: Any = None) -> None:
        if self._output is RunFormat.jsonl:
            complete = member is not None and not self._changes
            sys.stdout.write(json_line(evaluation, member=member, complete=complete).decode() + "\n")
            sys.stdout.flush()
            return
        name = evaluation.query if member is None else f"{evaluation.query}, {shown(member)}"
        if evaluation.error is not None:
            self._console.print(f"{name} @ {clock(evaluation.time)}: {evaluation.error}", style="bold", markup=False)
            return
        title = f"{name} @ {clock(evaluation.time)}: {size(evaluation)}"
        self._console.print(title, style="bold", markup=False)
        answer = evaluation.answer
        if not isinstance(answer, bool) and len(answer):
            self._console.print(answer_table(evaluation))


def report_refusals(engine: Engine, streams: Sequence[str]) -> None:
    """Report late and invalid events on standard error. DataError if all events are invalid."""
    for iri in streams:
        late = engine.late(iri)
        if late:
            print(f"{len(late)} late event{'s' * (len(late) != 1)} on <{iri}>", file=sys.stderr)
    letters = engine.dead_letters()
    if letters:
        accepted = sum(stream["events"] + stream["late"] for stream in engine.stats()["streams"].values())
        rejected = (
            f"{len(letters)} event{'s' * (len(letters) != 1)} rejected, the first one because: {letters[0].reason}"
        )
        if not accepted:
            raise DataError(f"no event is valid: {rejected}")
        print(rejected, file=sys.stderr)
