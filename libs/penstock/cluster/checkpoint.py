"""Checkpoints of a replica: its stored graph, slices and registrations, with the place in the log they reflect.

A restart maps the checkpoint and reads the log from there. What queries are due is not in it: that is
committed in the log.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.cluster.replica import EngineReplica, Registration
from penstock.cluster.terms import ClusterCore, TermCache
from penstock.engine.declaration import Declaration
from penstock.engine.directory import read_json
from penstock.engine.runtime import Runtime
from penstock.engine.saving import stream_file
from penstock.errors import StorageError
from penstock.query import functions
from penstock.rdf.terms import IRI
from penstock.store import _native as native
from penstock.wire import QueryRegistration

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from random import Random

    from penstock.cluster.terms import TermService
    from penstock.engine.directory import DataDirectory
    from penstock.engine.limits import Limits
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
        store = native.Store("", 1) if folder is None else native.Store.open(str(folder / "store"), "")
        terms = TermCache(dictionary, self._terms)
        core = ClusterCore(store, dictionary, self._limits, self._clock, self._rng, functions.call, terms=terms)
        replica = EngineReplica(Runtime(core), terms, self._partitions)
        if folder is None:
            return replica, [0] * self._partitions
        path = folder / "replica.json"
        state = read_json(path)
        if state.get("version") != VERSION or len(state["positions"]) != self._partitions:
            raise StorageError(f"{path}: another version of the format, or of another number of partitions")
        try:
            return replica, _restore(replica, folder, state)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise StorageError(f"{path}: corrupt: {error!r}") from error

    def save(self, replica: EngineReplica) -> bool:
        """Put a checkpoint in force; False where the replica is in the middle of an insertion, or nothing is kept."""
        if self._directory is None or not replica.whole:
            return False
        try:
            folder = self._directory.begin()
            _write(replica, folder)
            self._directory.publish(folder)
        except OSError as error:
            raise StorageError(f"{self._directory.path}: the checkpoint cannot be written: {error}") from error
        return True


def _write(replica: EngineReplica, folder: Path) -> None:
    runtime = replica.runtime
    replica.forget_names()
    streams = []
    for stream in runtime.streams:
        (folder / stream_file(stream.number)).write_bytes(stream.core.save())
        streams.append(
            {
                "number": stream.number,
                "declaration": stream.declaration.as_json(),
                "watermark": stream.watermark,
                "closed_ms": stream.closed_ms,
                "publisher": stream.publisher,
            }
        )
    state = {
        "version": VERSION,
        "positions": list(replica.spine.positions()),
        "commands": replica.commands,
        "insertions": replica.insertions,
        "declared": replica.declared,
        "ended": replica.ended,
        "step": replica.history.step,
        "history": replica.history.save(),
        "next_stream": runtime.streams.next_number,
        "streams": streams,
        "registrations": [asdict(registration) for registration in replica.registrations.values()],
        "named": replica.named,
        "blanks": runtime.core.dictionary.blank_count(),
        "tick": runtime.core.dictionary.tick(),
    }
    (folder / "replica.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "store").mkdir()
    runtime.core.store.save(str(folder / "store"))


def _restore(replica: EngineReplica, folder: Path, state: dict[str, Any]) -> Sequence[int]:
    runtime = replica.runtime
    dictionary = runtime.core.dictionary
    dictionary.set_tick(max(dictionary.tick(), state["tick"]))
    dictionary.reserve_blanks(state["blanks"])
    replica.named = state["named"]
    named: list[TermTuple] = [(IRI, iri, "", "") for iri in replica.named]
    dictionary.adopt(np.fromiter(replica.named.values(), np.uint64, len(named)), named)
    for saved in state["streams"]:
        stream = runtime.streams.add(Declaration.from_json(saved["declaration"]), saved["number"])
        stream.core.restore((folder / stream_file(stream.number)).read_bytes())
        stream.watermark, stream.closed_ms = saved["watermark"], saved["closed_ms"]
        stream.publisher, stream.ended = saved["publisher"], stream.iri in state["ended"]
    runtime.streams.next_number = state["next_stream"]
    replica.history.restore(state["history"], state["step"])
    replica.declared, replica.ended = state["declared"], state["ended"]
    replica.commands, replica.insertions = state["commands"], state["insertions"]
    for saved in state["registrations"]:
        record = QueryRegistration(**{**saved["record"], "streams": tuple(saved["record"]["streams"])})
        replica.registrations[record.number] = Registration(**{**saved, "record": record})
    positions: Sequence[int] = state["positions"]
    return positions
