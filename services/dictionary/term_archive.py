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
    from collections.abc import Container, Iterator, Sequence
    from pathlib import Path

    from penstock.core._native import Ids, TermTuple

FILE = "terms.sqlite"
_VERSION = 2
_CACHE_KB = 65_536  # memory for pages of the file
_TABLES = """
CREATE TABLE terms (id INTEGER PRIMARY KEY, hash INTEGER, lexical TEXT, datatype TEXT, lang TEXT, transient INTEGER);
CREATE INDEX terms_by_hash ON terms (hash);
CREATE INDEX transient_terms ON terms (id) WHERE transient = 1
"""
_FROM_VERSION_1 = """
ALTER TABLE terms ADD COLUMN transient INTEGER NOT NULL DEFAULT 0;
CREATE INDEX transient_terms ON terms (id) WHERE transient = 1
"""
_USES = "CREATE TEMP TABLE uses (id INTEGER PRIMARY KEY, generation INTEGER)"
"""The generation of the last request of each transient term. The table ends with the process."""
_ASKED = 500  # ids per statement
_LITERAL_BIT = 1 << 61  # the tag of an id distinguishes literals from IRIs (native/src/rdf/term.hpp)


@dataclass(frozen=True, slots=True)
class ArchiveState:
    """The content of the archive: the terms of the topic's records before offset `position`. These terms have slots
    below `next_slot`. Blank nodes with numbers below `reserved` are possibly in use. `promised`: the highest value that
    `position` has ever had. `terms`: the number of terms. `generation`: the latest generation (ADR 50). `expected`: the
    number of terms that the topic's last `DictionaryState` and the later entries give, or None without such a record.
    """

    position: int = START
    promised: int = START
    reserved: int = 0
    next_slot: int = 1
    terms: int = 0
    generation: int = 0
    expected: int | None = None


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
            self._file.execute(_USES)

    def _read_state(self) -> ArchiveState:
        if not self._file.execute("SELECT 1 FROM sqlite_master WHERE name = 'state'").fetchall():
            with self._transaction():
                self._file.execute("CREATE TABLE state (content TEXT)")
                self._make_tables()
                self._write_state(ArchiveState())
            return ArchiveState()
        ((content,),) = self._file.execute("SELECT content FROM state").fetchall()
        found = json.loads(content)
        version = found.pop("version")
        if version not in (1, _VERSION) or found.pop("topic") != self._topic:
            raise StorageError(f"{self._path}: it has another format version, or is of another cluster")
        if version == 1:
            return self._upgraded(ArchiveState(**found, terms=found["next_slot"] - 1))
        return ArchiveState(**found)

    def _upgraded(self, state: ArchiveState) -> ArchiveState:
        """Convert an archive of format version 1, in which all terms are permanent."""
        with self._transaction():
            self._execute(_FROM_VERSION_1)
            self._write_state(state)
        return state

    def _make_tables(self) -> None:
        self._execute(_TABLES)

    def _execute(self, statements: str) -> None:
        for statement in statements.split(";"):
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

    def append(
        self, ids: Sequence[int], terms: Sequence[TermTuple], state: ArchiveState, transient: Container[int] = ()
    ) -> None:
        """Add the terms of all records from the archive's position to the position in `state`, and store `state`.
        `transient`: ids of terms that can be removed.
        """
        rows = sorted(
            (_hash(term), id_, lexical, datatype, lang, int(id_ in transient))
            for id_, term in zip(ids, terms, strict=True)
            for _, lexical, datatype, lang in (term,)
        )  # in the order of the index, so that each page of the index is read once
        insert = "INSERT INTO terms (hash, id, lexical, datatype, lang, transient) VALUES (?, ?, ?, ?, ?, ?)"
        with self._errors(), self._transaction():
            self._file.executemany(insert, rows)
            self._write_state(state)
        self.state = state

    # ---- terms that can be removed (ADR 50)
    def keep(self, ids: Sequence[int]) -> None:
        """Make terms permanent. Their entries in the topic are permanent already."""
        with self._errors(), self._transaction():
            self._file.executemany("UPDATE terms SET transient = 0 WHERE id = ?", [(id_,) for id_ in ids])

    def remove(self, ids: Sequence[int], state: ArchiveState) -> None:
        """Remove terms, and store `state`."""
        with self._errors(), self._transaction():
            self._file.executemany("DELETE FROM terms WHERE id = ?", [(id_,) for id_ in ids])
            self._file.executemany("DELETE FROM temp.uses WHERE id = ?", [(id_,) for id_ in ids])
            self._write_state(state)
        self.state = state

    def ids_of(self, keys: Sequence[bytes]) -> list[int]:
        """Return the ids of the terms with these keys in the topic (`record_key`). Omits keys of unknown terms."""
        found = []
        with self._errors():
            for key in keys:
                number = int.from_bytes(key[:8], "little", signed=True)
                rows = self._file.execute("SELECT id, lexical, datatype, lang FROM terms WHERE hash = ?", (number,))
                found += [id_ for id_, *texts in rows.fetchall() if record_key((_kind(id_), *texts)) == key]
        return found

    def transient(self, ids: Sequence[int]) -> set[int]:
        """Return the ids of the terms that can be removed."""
        found: set[int] = set()
        with self._errors():
            if not self._file.execute("SELECT 1 FROM terms WHERE transient = 1 LIMIT 1").fetchall():
                return found
            for first in range(0, len(ids), _ASKED):
                part = ids[first : first + _ASKED]
                marks = ",".join("?" * len(part))
                rows = self._file.execute(f"SELECT id FROM terms WHERE transient = 1 AND id IN ({marks})", part)  # noqa: S608 - only marks
                found.update(id_ for (id_,) in rows.fetchall())
        return found

    def used(self, ids: Sequence[int], generation: int) -> None:
        """Record that transient terms were requested in a generation."""
        with self._errors():
            self._file.executemany("INSERT OR REPLACE INTO temp.uses VALUES (?, ?)", [(id_, generation) for id_ in ids])

    def unused(self, generation: int, most: int) -> list[int]:
        """Return the ids of at most `most` transient terms that were not requested in a generation or later ones, as
        far as this object has recorded requests.
        """
        query = (
            "SELECT terms.id FROM terms LEFT JOIN temp.uses ON terms.id = uses.id"
            " WHERE terms.transient = 1 AND (uses.generation IS NULL OR uses.generation < ?) LIMIT ?"
        )
        with self._errors():
            return [id_ for (id_,) in self._file.execute(query, (generation, most)).fetchall()]

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
