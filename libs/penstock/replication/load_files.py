"""The files of a bulk load: Parquet files in a folder. All stores must be able to read the folder. Query engines that
hold the stored graph themselves must also be able to read the folder (ADR 49).

The log contains the names and checksums of the files. A reader waits for a missing file, because the file system can be
temporarily unavailable. A wrong checksum is a permanent error. The process can then apply neither the step of the load
nor any later step.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import fs

from penstock.engine.intake.bins import bin_columns
from penstock.errors import DataError, LimitError, StorageError, UnavailableError
from penstock.json_text import parse_json
from penstock.wire import ShardLoad

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import BinColumns

MAX_FILES = 100_000
MAX_LABELS = 100_000


@dataclass(frozen=True, slots=True)
class LoadFile:
    """The file of one bin in one direction. `direction`: 0 if the bin's vertices are the subjects of the edges, 1 if
    they are the objects. `digest`: the file's SHA-256, hexadecimal.
    """

    direction: int
    bin: int
    folder: str
    name: str
    digest: str

    def read(self) -> BinColumns:
        """Return the columns of the file. UnavailableError if the file cannot be read now. StorageError if the file's
        checksum or format is wrong.
        """
        place = f"{self.folder}/{self.name}"
        data = read_file(self.folder, self.name)
        if hashlib.sha256(data).hexdigest() != self.digest:
            raise StorageError(f"{place} is not the file that was loaded: its checksum differs")
        try:
            return bin_columns(pa.BufferReader(data))
        except (pa.ArrowException, KeyError) as error:
            raise StorageError(f"{place} is no file of a load: {error}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Manifest:
    """The manifest of a prepared load, which the client sends to the coordinator.

    `folder`: a path that is valid in all stores and engines, or a URI of an Arrow file system. `pieces`: bins per
    shard. `triples`: the number of triples in the files, including triples that are already stored. `graphs`,
    `predicates`: the edge labels, in the order of their numbers.
    """

    folder: str
    pieces: int
    triples: int
    graphs: Ids
    predicates: Ids
    files: tuple[LoadFile, ...]

    @classmethod
    def of_json(cls, data: bytes) -> Manifest:
        """Parse a manifest from JSON (`to_json`). DataError if the manifest is invalid."""
        try:
            found = parse_json(data, "the manifest of a load")
            folder = str(found["folder"])
            files = tuple(LoadFile(int(d), int(b), folder, str(n), str(h)) for d, b, n, h in found["files"])
            labels = np.array(found["labels"], np.uint64).reshape(-1, 2)
            return cls(folder, int(found["pieces"]), int(found["triples"]), labels[:, 0], labels[:, 1], files)
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise DataError(f"not the manifest of a load: {error!r}") from error

    def to_json(self) -> bytes:
        """Return the manifest as JSON."""
        labels = np.stack([self.graphs, self.predicates], axis=1).tolist()
        files = [[file.direction, file.bin, file.name, file.digest] for file in self.files]
        found = {"folder": self.folder, "pieces": self.pieces, "triples": self.triples, "labels": labels}
        return json.dumps(found | {"files": files}).encode()

    def check(self, shards: int) -> None:
        """Check that no bin occurs twice, that each bin belongs to one of `shards` shards, and that this process can
        see all files. DataError if one of these conditions is not met. LimitError if there are too many files or
        labels.
        """
        if len(self.files) > MAX_FILES or len(self.graphs) > MAX_LABELS:
            raise LimitError(f"a load has at most {MAX_FILES} files, and {MAX_LABELS} pairs of graph and predicate")
        bins = {(file.direction, file.bin) for file in self.files}
        if len(bins) < len(self.files):
            raise DataError("two files of a load are for the same bin")
        if any(direction not in (0, 1) or not 0 <= bin_ < shards * self.pieces for direction, bin_ in bins):
            raise DataError(f"the load was not made for {shards} shards")
        system, path = file_system(self.folder)
        for file in self.files:
            if system.get_file_info(f"{path}/{file.name}").type != fs.FileType.File:
                where = f"{self.folder}/{file.name}"
                raise DataError(f"{where}: the coordinator cannot find it; the folder must be shared by all processes")

    def records(self, number: int, shards: int) -> Iterator[ShardLoad]:
        """Yield the log record of the load for each of `shards` shards. `number`: the number of the load among all
        insertions and loads.
        """
        by_shard: list[list[LoadFile]] = [[] for _ in range(shards)]
        for file in self.files:
            by_shard[file.bin // self.pieces].append(file)
        whole = number, self.triples, self.pieces, self.folder, self.graphs, self.predicates
        for mine in by_shard:
            names, digests = tuple(file.name for file in mine), tuple(file.digest for file in mine)
            bins, directions = (np.array([getattr(f, name) for f in mine], np.int64) for name in ("bin", "direction"))
            yield ShardLoad(*whole, names, digests, bins, directions)


class LoadFiles:
    """The files of a load, as the load's records for all shards list them."""

    def __init__(self, parts: Sequence[ShardLoad]) -> None:
        self._parts = parts

    @property
    def shards(self) -> int:
        """The number of shards of the cluster."""
        return len(self._parts)

    @property
    def pieces(self) -> int:
        """The number of bins per shard."""
        return self._parts[0].pieces

    @property
    def labels(self) -> tuple[Ids, Ids]:
        """The graphs and predicates of the edge labels, in the order of their numbers."""
        return self._parts[0].graphs, self._parts[0].predicates

    def files(self, shard: int | None = None) -> Iterator[LoadFile]:
        """Yield the files of a shard. If `shard` is None, yield the files of all shards."""
        for part in self._parts if shard is None else [self._parts[shard]]:
            columns = part.directions.tolist(), part.bins.tolist(), part.files, part.digests
            for direction, bin_, name, digest in zip(*columns, strict=True):
                yield LoadFile(direction, bin_, part.folder, name, digest)


def file_system(folder: str) -> tuple[fs.FileSystem, str]:
    """Return the Arrow file system of a folder, and the folder's path in this file system. DataError if Arrow does not
    support the folder.
    """
    try:
        return fs.FileSystem.from_uri(folder)  # type: ignore[no-any-return]
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{folder}: not a folder that loads can be read from: {error}") from error


def read_file(folder: str, name: str) -> bytes:
    """Return the content of a file. UnavailableError if the file cannot be read. DataError as for `file_system`."""
    system, path = file_system(folder)
    try:
        with system.open_input_file(f"{path}/{name}") as file:
            return bytes(file.read())
    except OSError as error:
        raise UnavailableError(f"{folder}/{name} cannot be read: {error}") from error
