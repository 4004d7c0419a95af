"""Checkpoints of an engine's replica: slices, registrations, the stored graph, and a log position.

If stores hold the stored graph, the checkpoint contains only the graph's snapshot number. All records before the log
position are applied in the checkpoint. A restart maps the checkpoint's files, and reads the log from this position. The
progress of queries is in the log, not in the checkpoint.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.checkpoint.checkpoint_writer import STORE, capture_store, stream_file
from penstock.engine.checkpoint.data_directory import read_json
from penstock.engine.stored_graph import LocalGraph
from penstock.errors import StorageError
from penstock.query.functions import text_functions
from penstock.rdf.terms import IRI
from penstock.remote.stores_graph import StoresGraph
from penstock.replication.replica import EngineReplica
from penstock.replication.replica_state import ReplicaState, check, restore
from penstock.services.query_engine import catch_up
from penstock.term_ids.cluster_terms import ClusterCore, TermCache

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

    from penstock.core._native import TermTuple
    from penstock.engine.checkpoint.data_directory import DataDirectory
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.limits import Limits
    from penstock.engine.standing.firing import EvaluationSink
    from penstock.remote.store_links import StoreLinks
    from penstock.replication.replica_state import Saved
    from penstock.term_ids.cluster_terms import TermService

VERSION = 7
PATIENCE_S = 0.2
"""Maximum time in s that an evaluation waits for stores. During this time, the engine does nothing else."""


class ReplicaFactory:
    """Creates replicas, either empty or from the current checkpoint. If `directory` is None, there are no checkpoints.

    `links`: links to the stores that hold the stored graph. If `links` is None, the stored graph is in this process.
    """

    def __init__(
        self,
        directory: DataDirectory | None,
        terms: TermService,
        partitions: int,
        limits: Limits,
        clock: Callable[[], int],
        rng: Random,
        links: StoreLinks | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._directory = directory
        self._terms = terms
        self._partitions = partitions
        self._limits = limits
        self._clock = clock
        self._rng = rng
        self._links, self._patience_s = links, patience_s

    def make(self, sink: EvaluationSink) -> tuple[EngineReplica, Sequence[int], StoresGraph | None]:
        """Return (replica, offsets, graph). `offsets`: the offset at which to begin, for each partition of the shards
        topic. `graph`: the stored graph if stores hold it, otherwise None. The replica reports its evaluations to
        `sink`. StorageError if the checkpoint is corrupt or was written with other settings.
        """
        folder = None if self._directory is None else self._directory.current()
        state = None if folder is None else self._checked(folder / "replica.json")
        saved = "" if folder is None else str(folder / STORE)
        stores = None if self._links is None else self._stores(self._links, saved, state)
        # the graph is in memory of this process, without files (ADR 13)
        graph = stores or LocalGraph(native.Store.open(saved, "") if saved else native.Store("", 1))
        dictionary = native.Dictionary()
        terms = TermCache(dictionary, self._terms)
        core = ClusterCore(graph, dictionary, self._limits, self._clock, self._rng, text_functions.call, terms=terms)
        replica = EngineReplica(core, self._partitions, sink, catch_up.AT_ONCE)
        if folder is None or state is None:
            return replica, [0] * self._partitions, stores
        return replica, _restore(replica, folder, state), stores

    def _checked(self, path: Path) -> Saved:
        """Return the state in a checkpoint. StorageError if the checkpoint was written with another format, number of
        partitions or `PENSTOCK_GRAPH`.
        """
        state: Saved = read_json(path)
        check(state, VERSION, self._partitions, path)
        if state["in_stores"] != (self._links is not None):
            where = "stores" if state["in_stores"] else "the engine"
            raise StorageError(
                f"{path}: the checkpoint is for a stored graph in {where}: remove it to change PENSTOCK_GRAPH"
            )
        return state

    def _stores(self, links: StoreLinks, saved: str, state: Saved | None) -> StoresGraph:
        snapshot = 0 if state is None else int(state["snapshot"])
        return StoresGraph(self._partitions, links, self._patience_s, saved, snapshot)

    def save(self, replica: EngineReplica) -> bool:
        """Write a checkpoint of `replica`. Returns False, and writes nothing, if a step is partially applied or there
        is no directory. StorageError if the checkpoint cannot be written.
        """
        if self._directory is None or not replica.whole:
            return False
        try:
            folder = self._directory.begin()
            _write(replica, folder, self._directory.in_force(), in_stores=self._links is not None)
            self._directory.publish(folder)
        except OSError as error:
            raise StorageError(f"{self._directory.path}: the checkpoint cannot be written: {error}") from error
        return True


def _write(replica: EngineReplica, folder: Path, previous: Path | None, *, in_stores: bool) -> None:
    runtime = replica.runtime
    replica.forget_names()
    for stream in runtime.streams:
        (folder / stream_file(stream.number)).write_bytes(stream.core.save())
    dictionary = runtime.core.dictionary
    graph = {"in_stores": in_stores, "snapshot": runtime.core.store.latest()}
    extra = {**graph, "named": replica.named, "blanks": dictionary.blank_count(), "tick": dictionary.tick()}
    state = ReplicaState.of(replica, VERSION, extra, lambda stream: {"watermark": stream.watermark})
    (folder / "replica.json").write_text(json.dumps(state.as_json()), encoding="utf-8")
    capture_store(runtime.core.store, folder, previous).write()


def _restore(replica: EngineReplica, folder: Path, state: Saved) -> Sequence[int]:
    runtime = replica.runtime
    dictionary = runtime.core.dictionary

    def restore_state_machine() -> None:
        dictionary.set_tick(max(dictionary.tick(), state["tick"]))
        dictionary.reserve_blanks(state["blanks"])
        replica.named = state["named"]
        named: list[TermTuple] = [(IRI, iri, "", "") for iri in replica.named]
        dictionary.adopt(np.fromiter(replica.named.values(), np.uint64, len(named)), named)

    def add_stream(declaration: Declaration, saved: Saved) -> LiveStream:
        stream = runtime.streams.add(declaration, saved["number"])
        stream.core.restore((folder / stream_file(stream.number)).read_bytes())
        stream.resume(saved["watermark"], saved["closed_ms"])
        return stream

    return restore(replica, state, folder / "replica.json", restore_state_machine, add_stream)
