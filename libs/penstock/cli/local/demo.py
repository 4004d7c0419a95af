"""`penstock demo`: replays recorded events at high speed, with example queries."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import typer
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from penstock.cli.local.display import answer_table, clock, size
from penstock.cli.local.mutation_recording import MutationRecording
from penstock.cli.local.recording import Recording, replay
from penstock.engine import Engine
from penstock.errors import StorageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from penstock.engine import Evaluation, Query

BASE = "http://penstock.example/aarhus/"
MAX_ROWS = 8  # rows of an answer on the live screen
MORNING = 1_409_616_000_000 + 5 * 3_600_000  # 2014-09-02T05:00Z: the morning
MUTATIONS = "http://penstock.example/wikidata/mutations"


class Dataset(StrEnum):
    """The recorded data of a demonstration."""

    aarhus = "aarhus"
    wikidata = "wikidata"


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A demonstration. It has a title, a file with stored data, streams with timing predicates, and the time in ms at
    which the replay begins. None: the replay begins with the first event.
    """

    title: str
    stored: str | None
    recordings: list[Recording]
    timing: list[str] | str
    start_ms: int | None

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """Return the demonstration of a dataset."""
        folder = examples(dataset)
        if dataset is Dataset.wikidata:
            mutations = MutationRecording(MUTATIONS, str(folder / "mutations.jsonl"))
            return cls("Mutations in the shape of Wikidata's", None, [mutations], [], None)
        recordings = [Recording(f"{BASE}{name}", str(folder / f"{name}.stream")) for name in ("traffic", "parking")]
        return cls("Aarhus, 2 September 2014", "city.ttl", recordings, "all", MORNING)

    def prepare(self, engine: Engine, folder: Path) -> int:
        """Load the stored data and declare the streams. Returns the number of loaded triples."""
        triples = 0 if self.stored is None else engine.load(folder / self.stored).triples
        for recording in self.recordings:
            engine.declare_stream(recording.stream, batch_ms=60_000, timing=self.timing)
        return triples


def examples(name: str = "aarhus") -> Path:
    """Return the folder of an example: in the installed package, or in the checkout."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parent.parent / "examples"):
        if (folder / name).is_dir():
            return folder / name
    raise StorageError("the examples are missing from this installation")


def demo(
    dataset: Annotated[Dataset, typer.Argument(help="The recorded data.")] = Dataset.aarhus,
    seconds: Annotated[float, typer.Option(help="Stop after this many seconds; 0 = at the end of the data.")] = 20.0,
    speed: Annotated[float, typer.Option(help="Seconds of the recorded time per second.")] = 1800.0,
    *,
    plain: Annotated[bool, typer.Option("--plain", help="Print lines of text instead of a live screen.")] = False,
) -> None:
    """Run standing queries over recorded events: a day of car parks and roads in Aarhus, or mutations that add and
    remove triples, in the format of Wikidata's mutation stream.
    """
    console = Console(highlight=False)
    folder, shown = examples(dataset), Demonstration.of(dataset)
    with Engine() as engine:
        triples = shown.prepare(engine, folder)
        texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((folder / "queries").glob("*.rq"))}
        queries = {stem: engine.register(text) for stem, text in texts.items()}
        console.print(
            f"{shown.title}: {triples} stored triples, {len(shown.recordings)} "
            f"stream{'s' * (len(shown.recordings) > 1)}, {len(queries)} standing queries, {speed:g} times real time"
        )
        live = not plain and console.is_terminal
        screen = LiveScreen(texts, console) if live else PlainScreen(texts, console)
        deadline = time.monotonic() + seconds if seconds > 0 else float("inf")
        with screen, suppress(KeyboardInterrupt):  # Ctrl-C ends the demo
            replay(
                engine,
                shown.recordings,
                speed=speed,
                start_ms=shown.start_ms,
                after_step=lambda t: _step(screen, queries, t, deadline),
            )
        console.print(f"{screen.evaluations} evaluations. Queries and data: {folder.name}/ in examples.")


def _step(screen: LiveScreen | PlainScreen, queries: dict[str, Query], t: int, deadline: float) -> bool:
    for stem, query in queries.items():
        for evaluation in query.poll():
            screen.show(stem, evaluation)
    screen.tick(t)
    return time.monotonic() < deadline


def _purpose(text: str) -> str:
    """Return the comment at the start of a query."""
    lines = [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    return " ".join(lines)


class PlainScreen:
    """Prints evaluations as lines of text."""

    def __init__(self, texts: dict[str, str], console: Console) -> None:
        """`texts`: the queries by file name."""
        self._console = console
        self._seen: set[str] = set()
        self._purposes = {stem: _purpose(text) for stem, text in texts.items()}
        self.evaluations = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def show(self, stem: str, evaluation: Evaluation) -> None:
        """Print an evaluation. Before the first evaluation of a query, print the purpose of the query."""
        self.evaluations += 1
        if stem not in self._seen:
            self._seen.add(stem)
            self._console.print(f"\n{stem}: {self._purposes[stem]}", style="bold", markup=False)
        self._console.print(f"[{clock(evaluation.time)}] {stem}: {size(evaluation)}", markup=False)
        if not isinstance(evaluation.answer, bool) and len(evaluation.answer):
            self._console.print(answer_table(evaluation, rows=5))

    def tick(self, t: int) -> None:
        """Do nothing."""


class LiveScreen:
    """A screen that displays the latest answer of every query."""

    def __init__(self, texts: dict[str, str], console: Console) -> None:
        """`texts`: the queries by file name."""
        self._purposes = {stem: _purpose(text) for stem, text in texts.items()}
        self._latest: dict[str, Evaluation] = {}
        self._console = console
        self._live = Live(console=console, refresh_per_second=8, transient=False, vertical_overflow="crop")
        self._changed = True
        self.evaluations = 0

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.__exit__(None, None, None)

    def show(self, stem: str, evaluation: Evaluation) -> None:
        """Update an answer. The answer is drawn at the next tick."""
        self.evaluations += 1
        self._changed = True
        self._latest[stem] = evaluation

    def tick(self, t: int) -> None:
        """Redraw the screen if an answer has changed. `t`: the event time that the replay has reached."""
        if self._changed:
            self._changed = False
            self._live.update(Group(_line(f"{clock(t)}  Ctrl-C to stop", "bold"), *self._sections()))

    def _sections(self) -> list[RenderableType]:
        """Return the sections of the screen. Each query has a section with its purpose and its latest answer. All
        sections have the same number of lines.
        """
        lines = (self._console.height - 2) // max(1, len(self._purposes))
        sections: list[RenderableType] = []
        for stem, purpose in self._purposes.items():
            evaluation = self._latest.get(stem)
            state = f" @ {clock(evaluation.time)[11:16]}: {size(evaluation)}" if evaluation else ": nothing yet"
            sections.append(_line(f"{stem}{state} · {purpose}", "reverse"))
            if evaluation is None or isinstance(evaluation.answer, bool) or lines < 3:
                continue
            table = answer_table(evaluation, rows=MAX_ROWS)
            table.box, table.caption, table.header_style = None, None, "dim"
            table.padding = (0, 2, 0, 0)
            drawn = self._console.render_lines(table, pad=False)[: lines - 1]
            sections += [Text.assemble(*((piece.text, piece.style or "") for piece in line)) for line in drawn]
        return sections


def _line(text: str, style: str) -> Text:
    """Return a line truncated at the edge of the screen."""
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
