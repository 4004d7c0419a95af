"""The input of a load. This module lists the files, chooses how each file is read, and makes data frames of rows.

Most rows have the columns file, start and text. Rows of Parquet files have the columns file and row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import reduce
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError
from penstock.mapping.files.file_mapping import DataFormat
from penstock.rdf.formats import Format
from penstock.spark.hadoop import HadoopFiles, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.hadoop import FileStatus

COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
"""File name extensions of Hadoop's codecs. Spark also chooses the codec by the extension."""
WHOLE_BYTES = 8 << 20
"""Maximum size in bytes on disk of a document that becomes one row. For a compressed document, the maximum is
COMPRESSED_WHOLE_BYTES. One task reads a larger document line by line.
"""
COMPRESSED_WHOLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, its number in the staging tables, and its format."""

    status: FileStatus
    number: int
    format: Format | DataFormat

    @property
    def is_split(self) -> bool:
        """Whether tasks can read parts of the file in parallel."""
        return self.format in (Format.N_TRIPLES, Format.N_QUADS, DataFormat.NDJSON, DataFormat.PARQUET)

    @property
    def is_whole(self) -> bool:
        """Whether the file fits into one row."""
        compressed = self.status.name.lower().endswith(COMPRESSED)
        return self.status.size <= (COMPRESSED_WHOLE_BYTES if compressed else WHOLE_BYTES)


def list_sources(
    spark: SparkSession,
    patterns: Sequence[str],
    format: str | None,  # noqa: A002 - as in the API
    mapping: dict[str, Any] | None = None,
) -> list[SourceFile]:
    """Return the files of paths, globs and folders without duplicates. `mapping`: settings of a mapping if the files
    are data files. DataError if a pattern matches no file, or if a format is unknown.
    """
    files = HadoopFiles(spark)
    found = {status.uri: status for pattern in patterns for status in files.matching(pattern)}
    statuses = list(found.values())
    numbers = _numbers(spark, [status.uri for status in statuses])
    if mapping is not None:
        settings = mapping if format is None else mapping | {"format": format}
        formats: list[Format | DataFormat] = [DataFormat.of(_unpacked(status.name), settings) for status in statuses]
    else:
        given = None if format is None else Format.named(format)
        formats = [given or format_of(status.name) for status in statuses]
    return [SourceFile(*each) for each in zip(statuses, numbers, formats, strict=True)]


def format_of(name: str) -> Format:
    """Return the format for a file's name. Extensions of compression are ignored."""
    return Format.of_path(_unpacked(name))


def _unpacked(name: str) -> str:
    path = PurePath(name)
    return str(path.with_suffix("")) if path.suffix.lower() in COMPRESSED else name


def _numbers(spark: SparkSession, uris: list[str]) -> list[int]:
    """Return Spark's hash of each address. By this hash of eight bytes, a row identifies its file.

    For a local file, this is the hash of the address in the form `file:/…`, because Spark writes this form into rows.
    Hadoop lists the same file as `file:///…`.
    """
    from pyspark.sql import functions as fn  # noqa: PLC0415 - an extra

    frame = spark.createDataFrame(
        [(i, uri.replace("file:///", "file:/", 1)) for i, uri in enumerate(uris)], "i int, uri string"
    )
    rows = frame.select("i", fn.xxhash64("uri").alias("number")).collect()
    numbers = [row.number for row in sorted(rows, key=lambda row: row.i)]
    if len(set(numbers)) != len(numbers):
        raise DataError("two files have the same hash: load them one after the other")
    return numbers


class Rows(Enum):
    """The kind of rows in a frame: lines of files that can be split, pieces of other files, rows of Parquet files."""

    LINES = "lines"
    PIECES = "pieces"
    COLUMNS = "columns"


@dataclass(frozen=True, slots=True)
class Reading:
    """A frame of rows, their kind, and the settings of Spark that apply while the frame is read."""

    frame: DataFrame
    rows: Rows
    settings: dict[str, str]


_UNCUT = {"spark.sql.files.maxPartitionBytes": str(1 << 60), "spark.sql.files.minPartitionNum": "1"}


def readings(spark: SparkSession, files: Sequence[SourceFile], split_bytes: int) -> list[Reading]:
    """Return the frames that read the files.

    Files of line-based formats, and Parquet files, are split and read in parallel. In the other formats, a small file
    becomes one row, and one task reads a large file line by line.
    """
    tables = [literal(file.status.uri) for file in files if file.format is DataFormat.PARQUET]
    split = [file for file in files if file.is_split and file.format is not DataFormat.PARQUET]
    lines = [literal(file.status.uri) for file in split]
    whole = [literal(file.status.uri) for file in files if not file.is_split and file.is_whole]
    large = [literal(file.status.uri) for file in files if not file.is_split and not file.is_whole]
    cut = {"spark.sql.files.maxPartitionBytes": str(split_bytes)}
    found = []
    if lines:
        found.append(Reading(_rows(spark.read.option("lineSep", "\n").text(lines)), Rows.LINES, cut))
    if tables:
        frame = spark.read.option("mergeSchema", True).parquet(*tables)
        found.append(Reading(_columns(frame), Rows.COLUMNS, cut | {"spark.sql.session.timeZone": "UTC"}))
    if whole:
        found.append(Reading(_rows(spark.read.text(whole, wholetext=True)), Rows.PIECES, cut))
    if large:
        frames = [_rows(spark.read.option("lineSep", "\n").text(path)) for path in large]
        found.append(Reading(reduce(lambda a, b: a.unionAll(b), frames), Rows.PIECES, _UNCUT))
    return found


def _rows(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as fn  # noqa: PLC0415 - an extra

    return frame.select(
        fn.xxhash64(fn.col("_metadata.file_path")).alias("file"),
        fn.col("_metadata.file_block_start").alias("start"),
        fn.concat(fn.col("value"), fn.lit("\n")).alias("text"),
    )


def _columns(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as fn  # noqa: PLC0415 - an extra

    return frame.select(fn.xxhash64(fn.col("_metadata.file_path")).alias("file"), fn.struct("*").alias("row"))
