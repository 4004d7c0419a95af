"""The terms that an instance has read from the dictionary topic. A standby instance follows the topic to keep the terms
up to date. Snapshots contain the terms.

The id of an IRI or literal is a slot, and slots are numbered in order of arrival. Without an archive, each reader of
the topic therefore assigns the same ids, and compares each assigned id with the id in the entry. With an archive, terms
can have been removed, and a reader takes the ids from the entries (ADR 50). An entry of kind "blank node" has no slot,
but reserves numbers of blank nodes. A snapshot consists of the native dictionary's file and a topic offset. The file
contains the terms of all records before this offset. With an archive of terms (ADR 104), the archive takes the place of
snapshots.
"""

from __future__ import annotations

import json
import time
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.engine.checkpoint.data_directory import read_json
from penstock.errors import DataError, StorageError
from penstock.log import START, Partition, TransientError
from penstock.quarantine import InternalRecords
from penstock.quarantine.kinds import DICTIONARY
from penstock.rdf.terms import BLANK
from penstock.services.dictionary.held_terms import HeldTerms
from penstock.wire import DictionaryState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.core import _native as native
    from penstock.core._native import TermTuple
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
        removes_terms = self.held.removes  # otherwise, a tombstone is a record that cannot be read
        for removes, group in groupby(messages, key=lambda message: removes_terms and message.value is None):
            records = list(group)
            self._remove(records) if removes else self._add(records)
        if messages:
            self.trim()
        return bool(messages)

    def _add(self, messages: Sequence[Message]) -> None:
        """Apply records that are not tombstones."""
        read = [(message, self._records.read(message, DICTIONARY)) for message in messages]
        for is_state, group in groupby(
            ((message, record) for message, record in read if record is not None),
            key=lambda pair: isinstance(pair[1], DictionaryState),
        ):
            if is_state:
                *_, (_, state) = group
                self.held.apply_state(state.terms, state.next_slot, state.generation)
            else:
                self._add_entries(list(group))
        self.position = messages[-1].offset + 1

    def _add_entries(self, entries: Sequence[tuple[Message, DictionaryEntry]]) -> None:
        self.reserved = max([self.reserved, *(entry.id for _, entry in entries if entry.kind == BLANK)])
        named = [(message, entry) for message, entry in entries if entry.kind != BLANK]
        terms: list[TermTuple] = [(e.kind, e.lexical, e.datatype, e.lang) for _, e in named]
        said = np.array([entry.id for _, entry in named], np.int64).astype(np.uint64)
        if self.held.removes:
            last = dict(zip(said.tolist(), (entry.transient for _, entry in named), strict=True))
            try:
                self.held.put(said, terms, {id_ for id_, transient in last.items() if transient})
            except DataError as error:
                raise StorageError(f"{named[0][0].topic}, from offset {named[0][0].offset}: {error}") from error
            return
        if any(entry.transient for _, entry in named):
            raise StorageError("the dictionary's topic has transient terms: set PENSTOCK_TERMS_IN_MEMORY (ADR 50)")
        found = self.held.claim(terms)
        for i in np.flatnonzero(found != said).tolist():
            message, entry = named[i]
            where = f"{message.topic}, offset {message.offset}"
            raise StorageError(f"{where}: {entry.lexical!r} has id {entry.id}, not {int(found[i])}")

    def _remove(self, tombstones: Sequence[Message]) -> None:
        """Apply tombstones. Terms that this instance does not know are skipped, because compaction can remove a term's
        entry before its tombstone.
        """
        self.archive_new()
        ids = self.held.ids_of([message.key for message in tombstones if message.key is not None])
        position = tombstones[-1].offset + 1
        self.held.remove(ids, position, self.reserved)
        self.position = position

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
        """Read to the current end of the topic. TransientError if that takes longer than `timeout_s` seconds.

        If the number of terms then differs from the number that the topic states, the instance has missed a tombstone
        that compaction has removed. It then empties the archive, and reads the topic again (ADR 50).
        """
        self._finish(timeout_s)
        if self._archive is not None and self.held.expected not in (None, self.held.size):
            self._archive.clear(self.promised)
            self.held = HeldTerms(self._archive, self._most)
            self.reserved, self.position = 0, START
            self._finish(timeout_s)
            if self.held.expected not in (None, self.held.size):
                raise StorageError(
                    f"{self._partition.topic} has {self.held.size} terms in place of {self.held.expected}"
                )

    def _finish(self, timeout_s: float) -> None:
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
