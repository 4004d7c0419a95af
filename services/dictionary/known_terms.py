"""The terms that an instance has read from the dictionary topic. A standby instance follows the topic to keep the terms
up to date. Snapshots contain the terms.

The id of an IRI or literal is a slot, and slots are numbered in order of arrival. Each reader of the topic therefore
assigns the same ids, and compares each assigned id with the id in the entry. An entry of kind "blank node" has no slot,
but reserves numbers of blank nodes. A snapshot consists of the native dictionary's file and a topic offset. The file
contains the terms of all records before this offset. With an archive of terms (ADR 104), the archive takes the place of
snapshots.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.checkpoint.data_directory import read_json
from penstock.errors import StorageError
from penstock.log import START, Partition, TransientError
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import DICTIONARY
from penstock.rdf.terms import BLANK
from penstock.services.dictionary.held_terms import HeldTerms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.core import _native as native
    from penstock.log import Log, Message
    from penstock.log.topics import TopicNames
    from penstock.services.dictionary.term_archive import TermArchive
    from penstock.wire import DictionaryEntry

_POLL = 10_000
_VERSION = 1
_FILE, _STATE = "dictionary.bin", "dictionary.json"


class KnownTerms:
    """The terms of all records before offset `position`. Blank nodes with numbers below `reserved` are possibly in use.

    `archive`: the archive of terms, if there is one; `most`: see `HeldTerms`. The owner of the archive closes the
    archive.

    `promised`: the topic offset of the snapshot or archive. After a crash, brokers can report an earlier end of the
    topic, until the last transactions are completed. In that case, the instance does not use the snapshot or archive,
    and reads the whole topic.
    """

    def __init__(
        self,
        log: Log,
        names: TopicNames,
        snapshot: Path | None = None,
        archive: TermArchive | None = None,
        most: int = 0,
    ) -> None:
        self._archive = archive
        self._most = most
        self.held = HeldTerms()
        self.reserved = 0
        self.unsaved: str | None = None  # why terms could not be written to the archive
        self.position = START
        self.promised = START
        self._records = InternalRecords(log, names)
        self._partition = Partition(names.dictionary)
        if archive is not None:
            self._open(log, archive, snapshot)
        elif snapshot is not None:
            self._load(log, snapshot)
        self._reader = log.reader({self._partition: self.position})

    @property
    def terms(self) -> native.Dictionary:
        """The terms in memory."""
        return self.held.memory

    def _state(self, snapshot: Path) -> Any:
        state = read_json(snapshot / _STATE)
        if state.get("version") != _VERSION or state.get("topic") != self._partition.topic:
            raise StorageError(f"{snapshot}: it has another format version, or is of another cluster")
        return state

    def _shown(self, log: Log) -> bool:
        """Whether the topic reaches `promised`."""
        return self.promised <= log.spans([self._partition])[self._partition].end

    def _load(self, log: Log, snapshot: Path) -> None:
        state = self._state(snapshot)
        self.promised = state["position"]
        if not self._shown(log):
            return
        self.terms.load(str(snapshot / _FILE))
        if self.terms.size() != state["terms"]:
            raise StorageError(f"{snapshot}: {self.terms.size()} terms in place of {state['terms']}")
        self.reserved, self.position = state["reserved"], state["position"]

    def _open(self, log: Log, archive: TermArchive, snapshot: Path | None) -> None:
        """Begin with the terms of an archive. `snapshot`: a snapshot that was written before the instance had an
        archive, or None. The offset of the snapshot is a lower bound for the end of the topic.
        """
        before = START if snapshot is None else self._state(snapshot)["position"]
        self.promised = max(archive.state.promised, before)
        if not self._shown(log):
            archive.clear(self.promised)
        self.reserved, self.position = archive.state.reserved, archive.state.position
        self.held = HeldTerms(archive, self._most)

    def read(self, timeout_s: float = 0.0) -> bool:
        """Read new records. Waits at most `timeout_s` seconds for records. Returns whether there were any records.
        StorageError if an entry's id is not the id that this process assigns to the term.
        """
        messages = self._reader.poll(_POLL, timeout_s)
        read = ((message, self._records.read(message, DICTIONARY)) for message in messages)
        entries: list[tuple[Message, DictionaryEntry]] = [
            (message, entry) for message, entry in read if entry is not None
        ]
        self.reserved = max([self.reserved, *(entry.id for _, entry in entries if entry.kind == BLANK)])
        named = [(message, entry) for message, entry in entries if entry.kind != BLANK]
        found = self.held.claim([(e.kind, e.lexical, e.datatype, e.lang) for _, e in named])
        said = np.array([entry.id for _, entry in named], np.int64).astype(np.uint64)
        for i in np.flatnonzero(found != said).tolist():
            message, entry = named[i]
            where = f"{message.topic}, offset {message.offset}"
            raise StorageError(f"{where}: {entry.lexical!r} has id {entry.id}, not {int(found[i])}")
        if messages:
            self.position = messages[-1].offset + 1
            self.trim()
        return bool(messages)

    def trim(self) -> None:
        """If the memory is full, write new terms to the archive, and remove terms from memory. All terms must be
        durable in the topic. If the archive cannot be written, all terms remain in memory until `archive_new` succeeds.
        """
        if self.held.full and self.unsaved is None:
            try:
                self.archive_new()
            except StorageError as error:
                self.unsaved = str(error)
            else:
                self.held.release()
        self.held.age()

    def archive_new(self) -> None:
        """Write new terms to the archive. All terms must be durable in the topic. StorageError if that fails."""
        self.held.archive_new(self.position, self.reserved)
        self.unsaved = None

    def finish(self, timeout_s: float) -> None:
        """Read to the current end of the topic. TransientError if that takes longer than `timeout_s` seconds."""
        self._reader.assign({self._partition: self.position})
        deadline = time.monotonic() + timeout_s
        while not self._reader.caught_up():
            self.read(min(timeout_s, 0.05))
            if time.monotonic() > deadline and not self._reader.caught_up():
                raise TransientError(f"the dictionary's log was not read to its end within {timeout_s} s")

    def wrote(self, offsets: Sequence[int]) -> None:
        """Advance `position` past entries that this process has written itself. `offsets`: the offsets of these
        entries.
        """
        self.position = max(offsets) + 1

    def snapshot(self, folder: Path) -> None:
        """Write the files of a snapshot to `folder`. All terms must be durable in the topic."""
        state = {
            "version": _VERSION,
            "topic": self._partition.topic,
            "position": self.position,
            "reserved": self.reserved,
            "terms": self.terms.size(),
        }
        self.terms.save(str(folder / _FILE))
        (folder / _STATE).write_text(json.dumps(state), encoding="utf-8")

    def close(self) -> None:
        """Close the reader."""
        self._reader.close()
