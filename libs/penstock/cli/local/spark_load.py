"""`penstock load --spark`: runs a load and displays its stages. It also writes bad lines to a file, and resumes or
removes staging folders.

`load` loads into an engine's data directory, `load_cluster` into a cluster.
"""

from __future__ import annotations

import json
import shutil
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.client.loading import Loading
from penstock.engine import Engine
from penstock.errors import DataError, LimitError
from penstock.term_ids.peer_certificates import PeerCertificates

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession
    from rich.console import Console

    from penstock.client.service_requests import Credentials
    from penstock.spark.bulk_load import BulkLoad

_POLL_S = 0.5
_SHORT_BYTES = 400 << 20  # above this, more optimised machine code pays off (ADR 30)
_COMPRESSED = frozenset({".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"})
_TITLES = {
    "parse": "parsing",
    "terms": "numbering terms",
    "dictionary": "writing the dictionary",
    "edges": "sorting edges",
}


def is_short(files: Sequence[str]) -> bool:
    """Return whether files are certainly small, that is, plain local files with fewer than about four million
    triples.
    """
    paths = [Path(file) for file in files]
    plain = all(path.is_file() and path.suffix not in _COMPRESSED for path in paths)
    return plain and sum(path.stat().st_size for path in paths) < _SHORT_BYTES


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """Command line options other than files and data directory. `staging` None: a folder in the data directory."""

    graph: str | None
    format: str | None
    max_bad: int
    staging: str | None
    bad_lines: Path | None
    master: str | None
    memory: str
    conf: tuple[str, ...] = ()
    mapping: dict[str, Any] | None = None

    def settings(self) -> dict[str, str]:
        """Return Spark's settings. DataError for an option that is not key=value."""
        for pair in self.conf:
            if "=" not in pair:
                raise DataError(f"--conf {pair}: expected key=value")
        return {key: value for key, _, value in (pair.partition("=") for pair in self.conf)}


def load(files: Sequence[str], data_dir: Path, options: SparkOptions, console: Console) -> str:
    """Load files with Spark. Returns a summary. After an error, the same call resumes the load. If the load was
    complete already, the call loads nothing.
    """
    from penstock.spark.bulk_load import BulkLoad, LoadSettings  # noqa: PLC0415 - an extra
    from penstock.spark.session import open_session  # noqa: PLC0415

    began = time.perf_counter()
    with Engine(data_dir=data_dir) as engine, _scratch(data_dir / "bulk-load.tmp") as scratch:
        intake = engine.bulk()
        console.print("starting Spark", highlight=False)
        conf = {"spark.local.dir": str((scratch / "spark").absolute()), **options.settings()}
        spark = open_session("penstock load", options.master, options.memory, conf, short=is_short(files))
        try:
            stages = Stages(spark, console)
            given = tuple(files), options.format, options.graph, options.max_bad, intake.shards
            settings = LoadSettings(*given, mapping=options.mapping)
            folder = options.staging or f"{data_dir.absolute()}/bulk-load"
            bulk = BulkLoad(spark, settings, folder, stages.ended, stages.begun)
            if bulk.open():
                console.print(f"resuming an earlier run from {folder}", highlight=False)
            summary = "" if bulk.staging.load_id == intake.last_load else _run(bulk, intake, stages, scratch, options)
            summary = summary or "the load was complete; nothing to do"
            engine.checkpoint()
            bulk.staging.remove()
        finally:
            spark.stop()
    return f"{summary} in {time.perf_counter() - began:.1f} s"


def load_cluster(
    files: Sequence[str], url: str, options: SparkOptions, console: Console, credentials: Credentials | None = None
) -> str:
    """Load files into the cluster with coordinators at `url`. Returns a summary.

    The staging folder contains the stages and the load's final files. Spark's workers, coordinators, stores and engines
    must have access to this folder. After a DataError or LimitError, nothing is loaded. After another error, the same
    call resumes the load.
    """
    from penstock.spark.bulk_load import BulkLoad, LoadSettings  # noqa: PLC0415 - an extra
    from penstock.spark.session import open_session  # noqa: PLC0415

    if options.staging is None:
        raise DataError("--cluster needs --staging: a folder accessible to Spark's workers, stores and engines")
    certificates = PeerCertificates.of_environment()
    began, root = time.perf_counter(), options.staging.rstrip("/")
    loading = Loading(url, credentials)
    target = loading.target()
    console.print("starting Spark", highlight=False)
    spark = open_session("penstock load", options.master, options.memory, options.settings(), short=is_short(files))
    try:
        stages = Stages(spark, console)
        given = tuple(files), options.format, options.graph, options.max_bad, target.shards
        settings = LoadSettings(
            *given, dictionaries=target.dictionaries, certificates=certificates, mapping=options.mapping
        )
        bulk = BulkLoad(spark, settings, f"{root}/staging", stages.ended, stages.begun, f"{root}/loads")
        if bulk.open():
            console.print(f"resuming an earlier run from {root}", highlight=False)
        with _removed_if_refused(bulk, options, stages), stages.shown():
            bulk.run()
            stages.begun("store")
            stored = loading.store(bulk.manifest())
            stages.ended("store", {"triples": stored})
        bad = set_aside(bulk, options, stages)
        bulk.staging.remove()
    finally:
        spark.stop()
    return f"{stored:,} triples{bad}, saved in {root}/loads, in {time.perf_counter() - began:.1f} s"


@contextmanager
def _removed_if_refused(bulk: BulkLoad, options: SparkOptions, stages: Stages) -> Iterator[None]:
    try:
        yield
    except (DataError, LimitError):
        set_aside(bulk, options, stages)
        bulk.staging.remove()  # the same files would fail again
        raise


@contextmanager
def _scratch(folder: Path) -> Iterator[Path]:
    """Create an empty scratch folder for the engine's load. Removes the remains of a killed load first."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(bulk: BulkLoad, intake: Any, stages: Stages, scratch: Path, options: SparkOptions) -> str:
    known = intake.known_terms(scratch / "terms.parquet")
    with _removed_if_refused(bulk, options, stages), stages.shown():
        bulk.run(known)
        stages.begun("store")
        with bulk.prepared(scratch) as prepared:
            report = intake.take(known, prepared)
        stages.ended("store", {"triples": report.triples})
    bad = set_aside(bulk, options, stages)
    return f"{report.triples:,} triples, {report.terms:,} terms{bad}"


def set_aside(bulk: BulkLoad, options: SparkOptions, stages: Stages) -> str:
    """Write the bad lines to the file that the options name. Returns a summary."""
    parsed = bulk.staging.found("parse")
    if parsed is None or not parsed["bad"]:
        return ""
    path = options.bad_lines or Path("bad-lines.jsonl")
    with path.open("w", encoding="utf-8") as out:
        for file, line, reason, text in bulk.bad_lines(options.max_bad + 1):
            record = {"file": file, "line": line, "reason": reason, "text": text.decode("utf-8", "backslashreplace")}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")
    stages.console.print(f"bad lines are in {path}", highlight=False)
    return f", {parsed['bad']:,} bad lines skipped"


class Stages:
    """Displays a line per finished stage, and the progress of the current stage."""

    def __init__(self, spark: SparkSession, console: Console) -> None:
        self.console = console
        self._store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - PySpark shows no records read
        self._stage, self._began = "", 0.0
        self._status: Any = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Display progress while the context is active."""
        if not self.console.is_terminal:
            yield
            return
        stop = threading.Event()
        with self.console.status("") as self._status:
            watching = threading.Thread(target=self._watch, args=(stop,), daemon=True)
            watching.start()
            try:
                yield
            finally:
                stop.set()
                watching.join()

    def begun(self, stage: str) -> None:
        """Start a stage."""
        self._stage, self._began = stage, time.perf_counter()

    def ended(self, stage: str, found: dict[str, Any]) -> None:
        """Finish a stage with its results."""
        seconds = time.perf_counter() - self._began
        triples, terms = found.get("triples"), found.get("new")
        summary = ""
        if triples is not None:
            summary = f": {triples:,} triples, {triples / max(seconds, 1e-9):,.0f} per second"
        elif terms is not None:
            summary = f": {terms:,} new terms"
        title = _TITLES.get(stage, "storing")
        self.console.print(f"{title}{summary} ({seconds:.1f} s)", highlight=False)

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(_POLL_S):
            title = _TITLES.get(self._stage, "storing")
            self._status.update(f"{title}{self._progress()}")

    def _progress(self) -> str:
        """Return as text the number of finished tasks of Spark's current stage. While Spark reads files, the text also
        has the number of lines per second.
        """
        stages = self._store.activeStages()
        if stages.isEmpty():
            return ""
        stage = stages.head()
        done, tasks, lines = stage.numCompleteTasks(), stage.numTasks(), stage.inputRecords()
        rate = lines / max(time.perf_counter() - self._began, 1e-9)
        return f": {done} of {tasks} tasks" + (
            f", {rate:,.0f} lines per second" if self._stage == "parse" and lines else ""
        )
