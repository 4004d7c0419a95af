"""Prepared loads as Spark writes them, made here without Spark."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.core import _native as native
from penstock.core import arrow as co
from penstock.replication.load_files import LoadFile, Manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.term_ids.cluster_terms import TermService

Triple = tuple[str, str, str, str]
"""Graph ("" = default), subject, predicate and object: all IRIs."""


def prepared(folder: Path, quads: Sequence[Triple], terms: TermService, shards: int, pieces: int = 2) -> Manifest:
    """Write the files of a load into a folder."""
    names = sorted({name for quad in quads for name in quad if name})
    ids = dict(zip(names, terms.encode([(1, name, "", "") for name in names]).tolist(), strict=True)) | {"": 0}
    g, s, p, o = (np.array([ids[quad[i]] for quad in quads], np.uint64) for i in range(4))
    files = []
    for direction, (vertex, value) in enumerate(((s, o), (o, s))):
        bins = native.bins(vertex, shards, pieces)
        for number in np.unique(bins).tolist():
            mine = bins == number
            columns = native.sort_edges(g[mine], p[mine], vertex[mine], value[mine])
            files.append(_written(folder, direction, number, columns))
    labels = sorted(set(zip(g.tolist(), p.tolist(), strict=True)))
    graphs, predicates = (np.array(column, np.uint64) for column in zip(*labels, strict=True))
    return Manifest(str(folder), pieces, len(quads), graphs, predicates, tuple(files))


def _written(folder: Path, direction: int, number: int, columns: Sequence[np.ndarray]) -> LoadFile:
    name = f"direction={direction}/bin={number}/part-0.parquet"
    path = folder / name
    path.parent.mkdir(parents=True)
    titles = ("graph", "predicate", "vertex", "value")
    pq.write_table(pa.table([co.longs(column) for column in columns], names=titles), path)
    return LoadFile(direction, number, str(folder), name, hashlib.sha256(path.read_bytes()).hexdigest())
