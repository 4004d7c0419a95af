"""The archive of terms: a file with the durable terms of a dictionary, in its data directory (ADR 104).

The archive is an SQLite database. The database contains exactly the terms of the dictionary topic's records before the
offset `position`. Terms and offset change in one transaction.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataError, StorageError
from penstock.log import START
from penstock.private_files import FILE_MODE, make_directory
from penstock.rdf.terms import IRI, LITERAL
from penstock.services.dictionary.record_keys import record_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from penstock.core._native import Ids, TermTuple

FILE = "terms.sqlite"
_VERSION = 1
_CACHE_KB = 65_536  # memory for pages of the file
_TABLES = """
CREATE TABLE terms (id INTEGER PRIMARY KEY, hash INTEGER, lexical TEXT, datatype TEXT, lang TEXT);
CREATE INDEX terms_by_hash ON terms (hash);
"""
_LITERAL_BIT = 1 << 61  # the tag of an id distinguishes literals from IRIs (native/src/rdf/term.hpp)


@dataclass(frozen=True, slots=True)
class ArchiveState:
    """The content of the archive: the terms of the topic's records before offset `position`. These terms have the slots
    below `next_slot`. Blank nodes with numbers below `reserved` are possibly in use. `promised`: the highest value that
    `position` has ever had.
    """

    position: int = START
    promised: int = START
    reserved: int = 0
    next_slot: int = 1


class TermArchive:
    """The archive in a folder. StorageError if the file cannot be read or written, or belongs to another topic.

    Callers pass terms in the form in which a native dictionary returns them (language tags in lower case). One thread
    at a time can use an archive.
    """

    def __init__(self, folder: Path, topic: str) -> None:
        self._path = folder / FILE
        self._topic = topic
        with self._errors():
            make_directory(folder)
            self._path.touch(FILE_MODE)
            self._file = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
            self.state = self._read_state()

    def _read_state(self) -> ArchiveState:
        if not self._file.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchall():
            with self._transaction():
                self._file.execute("CREATE TABLE state (content TEXT)")
                self._make_tables()
                self._write_state(ArchiveState())
            return ArchiveState()
        ((content,),) = self._file.execute("SELECT content FROM state").fetchall()
        found = json.loads(content)
        if found.pop("version") != _VERSION or found.pop("topic") != self._topic:
            raise StorageError(f"{self._path}: it has another format version, or is of another cluster")
        return ArchiveState(**found)

    def _make_tables(self) -> None:
        for statement in _TABLES.split(";"):
            self._file.execute(statement)

    def _write_state(self, state: ArchiveState) -> None:
        content = json.dumps({"version": _VERSION, "topic": self._topic, **asdict(state)})
        self._file.execute("DELETE FROM state")
        self._file.execute("INSERT INTO state VALUES (?)", (content,))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert errors of the file to StorageError."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self._path}: {error}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise
        try:
            self._file.execute("COMMIT")
        except sqlite3.Error:
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    def append(self, ids: Sequence[int], terms: Sequence[TermTuple], position: int, reserved: int) -> None:
        """Add the terms of all records from the archive's position to `position`."""
        rows = sorted(
            (_hash(term), id_, lexical, datatype, lang)
            for id_, term in zip(ids, terms, strict=True)
            for _, lexical, datatype, lang in (term,)
        )  # in the order of the index, so that each page of the index is read once
        state = ArchiveState(position, max(position, self.state.promised), reserved, self.state.next_slot + len(rows))
        with self._errors(), self._transaction():
            self._file.executemany("INSERT INTO terms (hash, id, lexical, datatype, lang) VALUES (?, ?, ?, ?, ?)", rows)
            self._write_state(state)
        self.state = state

    def clear(self, promised: int) -> None:
        """Remove all terms, and store `promised`. The next reader of the topic then begins at the start of the
        topic.
        """
        state = ArchiveState(promised=promised)
        with self._errors(), self._transaction():
            self._file.execute("DROP TABLE terms")
            self._make_tables()
            self._write_state(state)
        self.state = state

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, 0 for terms that the archive does not contain."""
        found = np.zeros(len(terms), np.uint64)
        with self._errors():
            for i, term in enumerate(terms):
                rows = self._file.execute(
                    "SELECT id, lexical, datatype, lang FROM terms WHERE hash = ?", (_hash(term),)
                )
                for id_, *texts in rows.fetchall():
                    if (_kind(id_), *texts) == term:
                        found[i] = id_
        return found

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms of ids. DataError for an id that the archive does not contain. StorageError for a damaged
        term.
        """
        found: list[TermTuple] = []
        for id_ in ids.tolist():
            with self._errors():
                rows = self._file.execute("SELECT hash, lexical, datatype, lang FROM terms WHERE id = ?", (id_,))
                row = rows.fetchone()
            if row is None:
                raise DataError(f"term id {id_} names nothing")
            term = (_kind(id_), *row[1:])
            if _hash(term) != row[0]:
                raise StorageError(f"{self._path}: the term of id {id_} is damaged")
            found.append(term)
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _kind(id_: int) -> int:
    return LITERAL if id_ & _LITERAL_BIT else IRI


def _hash(term: TermTuple) -> int:
    return int.from_bytes(record_key(term)[:8], "little", signed=True)
