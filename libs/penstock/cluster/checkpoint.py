"""Checkpoints of a replica: its stored graph, slices and registrations, with the place in the log they reflect.

A restart maps the checkpoint and reads the log from there. What queries are due is not in it: that is
committed in the log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from penstock.cluster.replica import EngineReplica
from penstock.cluster.replica_state import ReplicaState, check, restore
from penstock.cluster.terms import ClusterCore, TermCache
from penstock.engine.directory import read_json
from penstock.engine.runtime import Runtime
from penstock.engine.saving import STORE, capture_store, stream_file
from penstock.errors import StorageError
from penstock.query import functions
from penstock.rdf.terms import IRI
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

    from penstock.cluster.replica_state import Saved
    from penstock.cluster.terms import TermService
    from penstock.engine.declaration import Declaration
    from penstock.engine.directory import DataDirectory
    from penstock.engine.limits import Limits
    from penstock.engine.streams import LiveStream
    from penstock.store._native import TermTuple

VERSION = 4


class ReplicaFactory:
    """Makes replicas, empty or from the checkpoint in force. `directory` None = nothing is ever kept."""

    def __init__(
        self,
        directory: DataDirectory | None,
        terms: TermService,
        partitions: int,
        limits: Limits,
        clock: Callable[[], int],
        rng: Random,
    ) -> None:
        self._directory = directory
        self._terms = terms
        self._partitions = partitions
        self._limits = limits
        self._clock = clock
        self._rng = rng

    def make(self) -> tuple[EngineReplica, Sequence[int]]:
        """Return a replica, and from where each partition of the log is read on. StorageError where the files
        are bad.
        """
        folder = None if self._directory is None else self._directory.current()
        dictionary = native.Dictionary()
        # Without files it is memory of this process (ADR 13).
        store = native.Store("", 1) if folder is None else native.Store.open(str(folder / STORE), "")
        terms = TermCache(dictionary, self._terms)
        core = ClusterCore(store, dictionary, self._limits, self._clock, self._rng, functions.call, terms=terms)
        replica = EngineReplica(Runtime(core), terms, self._partitions)
        if folder is None:
            return replica, [0] * self._partitions
        path = folder / "replica.json"
        state = read_json(path)
        check(state, VERSION, self._partitions, path)
        return replica, _restore(replica, folder, state)

    def save(self, replica: EngineReplica) -> bool:
        """Put a checkpoint in force; False where the replica is in the middle of an insertion, or nothing is kept."""
        if self._directory is None or not replica.whole:
            return False
        try:
            folder = self._directory.begin()
            _write(replica, folder, self._directory.in_force())
            self._directory.publish(folder)
        except OSError as error:
            raise StorageError(f"{self._directory.path}: the checkpoint cannot be written: {error}") from error
        return True


def _write(replica: EngineReplica, folder: Path, previous: Path | None) -> None:
    runtime = replica.runtime
    replica.forget_names()
    for stream in runtime.streams:
        (folder / stream_file(stream.number)).write_bytes(stream.core.save())
    dictionary = runtime.core.dictionary
    extra = {"named": replica.named, "blanks": dictionary.blank_count(), "tick": dictionary.tick()}
    state = ReplicaState.of(replica, VERSION, extra, lambda stream: {"watermark": stream.watermark})
    (folder / "replica.json").write_text(json.dumps(state.as_json()), encoding="utf-8")
    capture_store(runtime.core.store, folder, previous).write()


def _restore(replica: EngineReplica, folder: Path, state: Saved) -> Sequence[int]:
    runtime = replica.runtime
    dictionary = runtime.core.dictionary

    def restore_world() -> None:
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

    return restore(replica, state, folder / "replica.json", restore_world, add_stream)
