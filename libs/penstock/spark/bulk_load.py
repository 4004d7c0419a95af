"""The bulk load: converts files to a folder of sorted edges that an engine loads as one commit
(`penstock.engine.intake.bulk_intake`).

A load has four stages. `parse` converts text to statements in local ids. `terms` finds and numbers the distinct terms.
`dictionary` writes the new terms with their ids, in id order. `edges` writes the sorted bins of the shards. Each stage
writes a folder, and an interrupted load resumes after the last complete stage. The counts of earlier stages determine
the partition sizes of later stages, so that a task's memory stays bounded.

A load into a cluster has no stage `dictionary`: the cluster's dictionary service numbers the terms. The edge files of
such a load remain, because stores read these files. Query engines with PENSTOCK_GRAPH=engine also read the files,
because these engines hold the stored graph themselves.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.intake.bulk_intake import NO_TERMS, Prepared
from penstock.errors import DataError, LimitError
from penstock.spark import edges, numbering, record_mapping, statement_parsing
from penstock.spark.failures import job
from penstock.spark.hadoop import HadoopFiles, escaped
from penstock.spark.manifest import manifest_of, place_of
from penstock.spark.sources import Rows, SourceFile, list_sources, readings
from penstock.spark.staging import Staging

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from penstock.engine.intake.bulk_intake import KnownTerms
    from penstock.replication.load_files import Manifest
    from penstock.term_ids.peer_certificates import PeerCertificates

TERMS_PER_TASK = 2_000_000
EDGES_PER_BIN = 4_000_000
SPLIT_BYTES = 64 << 20
MAX_SLOT = (1 << 32) - 1
MAX_NUMBERING_TASKS = 1 << 20
DICTIONARY_GIVE_UP_S = 300.0
"""How long a task waits for a cluster's dictionary, in seconds."""
_PART_STEP = 1 << 32
_FUNCTIONS: dict[tuple[Rows, bool], Callable[..., Iterator[Any]]] = {
    (Rows.LINES, False): statement_parsing.parse_lines,
    (Rows.PIECES, False): statement_parsing.parse_documents,
    (Rows.LINES, True): record_mapping.map_lines,
    (Rows.PIECES, True): record_mapping.map_documents,
    (Rows.COLUMNS, True): record_mapping.map_columns,
}
"""The function of the stage `parse` for each kind of rows, without and with a mapping."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """The files of a load, and its target.

    - `files`: paths, globs, folders.
    - `format`: the format of all files. None: file names determine the formats.
    - `graph`: IRI of the graph for statements without a graph.
    - `max_bad`: maximum number of bad lines. Bad lines are skipped. With more bad lines, the load fails.
    - `shards`: number of shards of the target.
    - `split_bytes`: size of splits that are read in parallel.
    - `edges_per_bin`, `terms_per_task`: limits that bound a task's memory.
    - `dictionaries`: addresses of the target cluster's dictionary service, which assigns the ids. Without addresses,
    the target is an engine, whose terms are in `KnownTerms`.
    - `mapping`: settings of a mapping (`FileMapping`), if the files are data files.
    - `certificates`: certificates for the connections to these dictionaries. The certificate files must exist where
    Spark's tasks run.
    """

    files: tuple[str, ...]
    format: str | None = None
    graph: str | None = None
    max_bad: int = 1_000
    shards: int = 1
    split_bytes: int = SPLIT_BYTES
    edges_per_bin: int = EDGES_PER_BIN
    terms_per_task: int = TERMS_PER_TASK
    dictionaries: tuple[str, ...] = ()
    certificates: PeerCertificates | None = None
    mapping: dict[str, Any] | None = None


class BulkLoad:
    """A bulk load. `staging`: a folder on any Hadoop file system. `begun`, `ended`: called at the start and end of each
    stage.

    `retained_folder`: the folder that receives the edge files of loads into a cluster.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: LoadSettings,
        staging: str,
        ended: Callable[[str, dict[str, Any]], None] | None = None,
        begun: Callable[[str], None] | None = None,
        retained_folder: str | None = None,
    ) -> None:
        self._spark = spark
        self._settings = settings
        self._files = HadoopFiles(spark)
        self._ended = ended
        self._begun = begun
        self.staging = Staging(self._files, staging, retained_folder)
        self._sources: list[SourceFile] = []

    def open(self) -> bool:
        """List the files, and open the staging folder. Returns whether the folder contains complete stages of an
        earlier run of the same load.
        """
        self._sources = list_sources(self._spark, self._settings.files, self._settings.format, self._settings.mapping)
        settings = self._settings
        return self.staging.open(
            {
                "files": [
                    [file.status.uri, file.status.size, file.status.modified_ms, file.format.value]
                    for file in self._sources
                ],
                "graph": settings.graph,
                "max_bad": settings.max_bad,
                "shards": settings.shards,
                "cluster": bool(settings.dictionaries),
                "mapping": settings.mapping,
            }
        )

    def run(self, known: KnownTerms = NO_TERMS) -> None:
        """Run the incomplete stages. If the engine's dictionary has changed since an earlier run, stage `terms` and all
        later stages run again.

        DataError if the files cannot be loaded. LimitError if the files have too many terms. StorageError if a Spark
        job fails.
        """
        terms = self.staging.found("terms")
        if terms is not None and terms["known"] != known.digest:  # the engine's dictionary has changed
            self.staging.begin("terms")
        self._stage("parse", self._parse)
        self._refuse_bad()
        self._stage("terms", partial(self._number, known))
        if not self._settings.dictionaries:
            self._stage("dictionary", self._dictionary)
        self._stage("edges", self._edges)

    def _stage(self, name: str, run: Callable[[str], dict[str, Any]]) -> None:
        if self.staging.found(name) is not None:
            return
        folder = self.staging.begin(name)
        if self._begun is not None:
            self._begun(name)
        with job(f"stage {name}"):
            found = run(folder)
        self.staging.complete(name, found)
        if self._ended is not None:
            self._ended(name, found)

    def _found(self, stage: str) -> dict[str, Any]:
        found = self.staging.found(stage)
        assert found is not None, stage
        return found

    # ---- parse
    def _parse(self, folder: str) -> dict[str, Any]:
        known = {file.number: (file.format, file.status.uri) for file in self._sources}
        for number, reading in enumerate(readings(self._spark, self._sources, self._settings.split_bytes)):
            settings = statement_parsing.ParseSettings(
                known, self._settings.graph, self._settings.max_bad, number * _PART_STEP, self._settings.mapping
            )
            self._configure(16_384, reading.settings)
            function = partial(_FUNCTIONS[reading.rows, settings.mapping is not None], settings)
            parsed = reading.frame.mapInArrow(function, statement_parsing.STAGED_DDL)
            parsed.write.partitionBy("what").mode("append").parquet(folder)
        return self._count_parsed()

    def _count_parsed(self) -> dict[str, Any]:
        from pyspark.sql import functions as fn  # noqa: PLC0415 - an extra

        rows = (
            self._read("parse", statement_parsing.STAGED_DDL)
            .groupBy("what")
            .agg(fn.count("*").alias("rows"), fn.sum("line").alias("lines"), fn.min("line").alias("least"))
            .collect()
        )
        counted = {row.what: row for row in rows}
        triples = counted.get("triples")
        return {
            "triples": 0 if triples is None else triples.lines,
            "terms": counted["terms"].rows if "terms" in counted else 0,
            "bad": counted["bad"].rows if "bad" in counted else 0,
            "bytes": sum(file.status.size for file in self._sources),
        }

    # ---- bad lines
    def bad_lines(self, at_most: int) -> list[tuple[str, int | None, str, bytes]]:
        """Return at most `at_most` arbitrary bad lines as (file, line, reason, bytes), sorted by file and line. If the
        line is None, the whole document is bad.
        """
        staged = self._read("parse", statement_parsing.STAGED_DDL)
        lines = staged.where("what = 'lines'").select("file", "start", "line").collect()
        before: dict[tuple[int, int], int] = {}
        total: dict[int, int] = {}
        for row in sorted(lines, key=lambda row: (row.file, row.start)):
            before[row.file, row.start] = total.get(row.file, 0)
            total[row.file] = total.get(row.file, 0) + row.line
        names = {file.number: file.status.uri for file in self._sources}
        rows = staged.where("what = 'bad'").select("file", "start", "line", "reason", "text").limit(at_most).collect()
        found = [
            (
                names[row.file],
                None if row.line == statement_parsing.WHOLE_DOCUMENT else before[row.file, row.start] + row.line,
                row.reason,
                bytes(row.text),
            )
            for row in rows
        ]
        return sorted(found, key=lambda bad: (bad[0], bad[1] or 0))

    def _refuse_bad(self) -> None:
        count = self._found("parse")["bad"]
        if count == 0:
            return
        bad = self.bad_lines(self._settings.max_bad + 1)
        for file, line, reason, _ in bad:
            if line is None:
                raise DataError(f"{file}: {reason}")
        if count > self._settings.max_bad:
            file, number, reason, _ = bad[0]
            raise DataError(f"more than {self._settings.max_bad} bad lines; the first: {file}: line {number}, {reason}")

    # ---- terms
    def _number(self, known: KnownTerms, folder: str) -> dict[str, Any]:
        terms = self._read("parse", statement_parsing.STAGED_DDL).where("what = 'terms'")
        columns = ("part", "slot", "kind", "lexical", "datatype", "lang")
        rows: DataFrame = terms.select(*columns)
        if known.file is not None:
            copy = self.staging.path("terms-known.parquet")
            self._files.put(known.file, copy)
            rows = rows.unionAll(self._spark.read.parquet(escaped(copy)).select(*columns))
        tasks = self._tasks((self._found("parse")["terms"] + known.next_slot) / self._settings.terms_per_task)
        if tasks > MAX_NUMBERING_TASKS:
            raise LimitError(f"a load has at most {MAX_NUMBERING_TASKS * self._settings.terms_per_task} terms")
        self._configure(65_536)
        number: Callable[..., Any] = numbering.number_terms
        if self._settings.dictionaries:
            number = partial(
                numbering.encode_terms,
                self._settings.dictionaries,
                self._settings.certificates,
                DICTIONARY_GIVE_UP_S,
            )
        numbered = rows.repartition(tasks, "lexical").mapInArrow(number, numbering.NUMBERED_DDL)
        numbered.write.partitionBy("what").parquet(folder)
        self._files.delete(self.staging.path("terms-known.parquet"))
        return self._first_numbers(known, tasks)

    def _first_numbers(self, known: KnownTerms, tasks: int) -> dict[str, Any]:
        entries, blanks = np.zeros(tasks, np.int64), np.zeros(tasks, np.int64)
        for row in self._read("terms", numbering.NUMBERED_DDL).where("what = 'count'").collect():
            entries[row.task], blanks[row.task] = row.entries, row.blanks
        if known.next_slot + int(entries.sum()) > MAX_SLOT:
            raise LimitError(f"the dictionary would have more than {MAX_SLOT} terms")
        return {
            "known": known.digest,
            "new": int(entries.sum()),
            "first_entries": (known.next_slot + np.cumsum(entries) - entries).tolist(),
            "first_blanks": (known.blanks + np.cumsum(blanks) - blanks).tolist(),
            "blanks": known.blanks + int(blanks.sum()),
        }

    def _dictionary(self, folder: str) -> dict[str, Any]:
        from pyspark.sql import functions as fn  # noqa: PLC0415 - an extra

        first = self._found("terms")["first_entries"]
        begins = fn.array(*(fn.lit(number) for number in first))
        code = fn.col("code")
        task = fn.shiftright(code, 32).bitwiseAND(MAX_NUMBERING_TASKS - 1).cast("int")
        tag = code.bitwiseAND(7 << 60)
        number = fn.element_at(begins, task + 1) + code.bitwiseAND((1 << 32) - 1)
        new = self._read("terms", numbering.NUMBERED_DDL).where("what = 'new'")
        self._configure(65_536)
        (
            new.repartitionById(len(first), task)  # a task's numbers form a range, so that files are in id order
            .select(tag.bitwiseOR(number).alias("id"), number.alias("slot"), "kind", "lexical", "datatype", "lang")
            .sortWithinPartitions("slot")
            .write.parquet(folder)
        )
        return {"terms": self._found("terms")["new"]}

    # ---- edges
    def _edges(self, folder: str) -> dict[str, Any]:
        terms, triples = self._found("terms"), self._found("parse")["triples"]
        pieces = max(1, -(-triples // (self._settings.edges_per_bin * self._settings.shards)))
        first = (np.array(terms[name], np.uint64) for name in ("first_entries", "first_blanks"))
        settings = edges.DealSettings(self._settings.shards, pieces, *first)
        self._configure(16)
        dealt = self._statements().mapInArrow(partial(edges.deal, settings), edges.DEALT_DDL)
        placed = dealt.repartitionById(2 * settings.bins, "place")
        in_order = placed.mapInArrow(partial(edges.sort_bins, settings.bins), edges.SORTED_DDL)
        in_order.write.partitionBy("direction", "bin").parquet(folder)
        return {"pieces": pieces, "shards": settings.shards}

    def _statements(self) -> DataFrame:
        """Return the triples of stage `parse` and the maps of stage `terms`. A *part* is the output of one task of
        `parse`. The map of a part leads from its local ids to codes (see `numbering`). The rows of a part are
        consecutive. Its map comes first, then its triples.
        """
        maps = self._read("terms", numbering.NUMBERED_DDL).where("what = 'map'")
        triples = self._read("parse", statement_parsing.STAGED_DDL).where("what = 'triples'")
        nothing = [f"cast(null as binary) {name}" for name in "spog"]
        rows = maps.selectExpr("part", "0 as kind", "slots", "codes", *nothing).unionAll(
            triples.selectExpr("part", "1 as kind", "cast(null as binary) slots", "cast(null as binary) codes", *"spog")
        )
        tasks = self._tasks(triples.select("part").distinct().count())
        return rows.repartition(tasks, "part").sortWithinPartitions("part", "kind")

    # ---- for a cluster
    def manifest(self) -> Manifest:
        """Return the manifest of the edge files, for the coordinator. After this call, `staging.remove` retains the
        edge files if they are in a `retained_folder`.
        """
        found = manifest_of(self._files, self.staging.path("edges"), self._found("edges")["pieces"])
        self.staging.complete("submitted", {"triples": found.triples})
        return found

    # ---- for the engine
    @contextmanager
    def prepared(self, scratch: Path) -> Iterator[Prepared]:
        """Yield the results of the stages. Files of remote file systems are copied to the folder `scratch` one at a
        time.
        """
        edges_found, terms = self._found("edges"), self._found("terms")
        yield Prepared(
            dictionary=(file for _, file in self._local("dictionary", scratch)),
            edges=((*place_of(uri), file) for uri, file in self._local("edges", scratch)),
            blanks=terms["blanks"],
            pieces=edges_found["pieces"],
            name=self.staging.load_id,
        )

    def _local(self, stage: str, scratch: Path) -> Iterator[tuple[str, Path]]:
        for status in self._files.all_files(self.staging.path(stage)):
            with self._files.local(status.uri, scratch) as file:
                yield status.uri, file

    # ---- shared
    def _read(self, stage: str, schema: str) -> DataFrame:
        return self._spark.read.schema(schema).parquet(escaped(self.staging.path(stage)))

    def _tasks(self, minimum: float) -> int:
        return max(int(self._spark.sparkContext.defaultParallelism), int(np.ceil(minimum)))

    def _configure(self, rows_per_batch: int, settings: dict[str, str] | None = None) -> None:
        """Limit the rows per batch of a task, because one row can contain packed columns of thousands of ids."""
        conf = self._spark.conf
        conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(rows_per_batch))
        conf.set("spark.sql.parquet.columnarReaderBatchSize", str(min(rows_per_batch, 4_096)))
        conf.unset("spark.sql.files.minPartitionNum")
        for key, value in (settings or {}).items():
            conf.set(key, value)
