"""The manifest of a load into a cluster, for the coordinator. The manifest contains names and checksums of the edge
files, and edge labels.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa

from penstock.core import arrow as co
from penstock.engine.intake.bins import bin_columns
from penstock.replication.load_files import LoadFile, Manifest, read_file

if TYPE_CHECKING:
    from penstock.spark.hadoop import HadoopFiles


def manifest_of(files: HadoopFiles, folder: str, pieces: int) -> Manifest:
    """Return the manifest of an edge folder. Reads every file once. `pieces`: number of bins per shard.

    The number of triples is the number of edges in the files that are sorted by subject.
    """
    address, found, triples = arrow_address(folder), [], 0
    labels: set[tuple[int, int]] = set()
    for status in files.all_files(folder):
        direction, bin_ = place_of(status.uri)
        name = unquote("/".join(status.uri.split("/")[-3:]))
        data = read_file(address, name)
        found.append(LoadFile(direction, bin_, address, name, hashlib.sha256(data).hexdigest()))
        if direction == 0:
            graphs, predicates, vertices, _ = bin_columns(pa.BufferReader(data))
            triples += len(vertices)
            labels |= {(int(graphs[first]), int(predicates[first])) for first, _ in co.runs(graphs, predicates)}
    columns = np.array(sorted(labels), np.uint64).reshape(-1, 2)
    return Manifest(address, pieces, triples, columns[:, 0], columns[:, 1], tuple(found))


def place_of(uri: str) -> tuple[int, int]:
    """Return direction and bin of an edge file, from its folder names."""
    *_, direction, number, _ = uri.split("/")
    return int(direction.removeprefix("direction=")), int(number.removeprefix("bin="))


def arrow_address(folder: str) -> str:
    """Return a Hadoop folder in Arrow's notation: a local path or a URI."""
    split = urlsplit(folder)
    if split.scheme in ("", "file"):
        return str(Path(unquote(split.path) if split.scheme else folder).absolute())
    return folder.replace("s3a://", "s3://", 1)
