"""The terms of a dictionary instance. Either the memory contains all terms, or the archive contains all terms and the
memory contains the recently used terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.errors import LimitError
from penstock.rdf.id_layout import TAG_IRI, TAG_LITERAL, TAG_SHIFT
from penstock.rdf.terms import BLANK, LITERAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids, TermTuple
    from penstock.services.dictionary.term_archive import TermArchive

_AGES = 8  # number of ticks by which the last uses of terms in memory are distinguished


class HeldTerms:
    """Terms and their ids. New terms get the next slots, in order.

    `archive`: the archive, or None to hold all terms in `memory`. `most`: with an archive, the number of terms above
    which terms leave the memory.
    """

    def __init__(self, archive: TermArchive | None = None, most: int = 0) -> None:
        self.memory = native.Dictionary()
        self._archive = archive
        self._most = most
        self._aged = 0  # the size of the memory at the last tick
        self._next_slot = 1
        self._new: list[int] = []  # ids of the terms that are not in the archive
        if archive is not None:
            self.memory.attach(archive)
            self._next_slot = archive.state.next_slot

    @property
    def next_slot(self) -> int:
        """The slot of the next new term."""
        return native.next_slot(self.memory) if self._archive is None else self._next_slot

    @property
    def size(self) -> int:
        """The number of terms, in memory and in the archive."""
        return self.memory.size() if self._archive is None else self._next_slot - 1

    @property
    def full(self) -> bool:
        """Whether terms should leave the memory."""
        return self._archive is not None and self.memory.size() > self._most

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, 0 for unknown terms. Terms that are only in the archive are read into memory."""
        ids = self.memory.find_many(terms)
        if self._archive is None or self._archive.state.next_slot == 1:
            return ids
        missing = [i for i in np.flatnonzero(ids == 0).tolist() if terms[i][0] != BLANK]
        if missing:
            asked = self._canonical([terms[i] for i in missing])
            found = self._archive.find(asked)
            known = np.flatnonzero(found)
            self.memory.adopt(found[known], [asked[i] for i in known])
            ids[missing] = found
        return ids

    def claim(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals. New terms get ids. LimitError if there are not enough ids."""
        if self._archive is None:
            self.check_left(len(terms))
            ids = self.memory.intern_many(terms)
            self.memory.keep(ids)
            return ids
        ids = self.find(terms)
        missing = np.flatnonzero(ids == 0).tolist()
        if missing:
            asked = self._canonical([terms[i] for i in missing])
            new = list(dict.fromkeys(asked))
            self.check_left(len(new))
            slots = np.arange(self._next_slot, self._next_slot + len(new), dtype=np.uint64)
            literal = np.array([term[0] == LITERAL for term in new])
            given = slots | (np.where(literal, TAG_LITERAL, TAG_IRI) << TAG_SHIFT)
            self.memory.adopt(given, new)
            self._next_slot += len(new)
            self._new += given.tolist()
            by_term = dict(zip(new, given.tolist(), strict=True))
            ids[missing] = [by_term[term] for term in asked]
        return ids

    def check_left(self, needed: int) -> None:
        """Raise LimitError if there are not enough ids for new terms. `needed`: the number of new terms."""
        if self.next_slot + needed > native.PRIVATE_SLOTS:
            raise LimitError(f"the cluster has used up its ids: {native.PRIVATE_SLOTS - 1} terms")

    def _canonical(self, terms: Sequence[TermTuple]) -> list[TermTuple]:
        """Return terms in the form in which the dictionary returns them. Equal terms then have equal tuples."""
        local = native.LocalTerms(self.memory)
        return [term for term in local.decode(np.array([local.intern(*term) for term in terms], np.uint64)) if term]

    def archive_new(self, position: int, reserved: int) -> None:
        """Write to the archive the terms that the archive does not contain yet. StorageError if that fails.

        All terms must be durable, and in records of the topic before offset `position`.
        """
        if self._archive is None or position == self._archive.state.position:
            return
        now = self.memory.tick()
        self.memory.set_tick(0)  # so that the next call does not count as a use of the terms
        terms = [term for term in native.LocalTerms(self.memory).decode(np.array(self._new, np.uint64)) if term]
        self.memory.set_tick(now)
        self._archive.append(self._new, terms, position, reserved)
        self._new = []

    def age(self) -> None:
        """Begin a new tick if the memory has grown by an eighth of its limit since the last tick began. A tick is the
        unit in which the time of a term's last use is measured.
        """
        if self.memory.size() - self._aged >= self._most // 8:
            self.memory.set_tick(self.memory.tick() + 1)
            self._aged = self.memory.size()

    def release(self) -> None:
        """Remove the least recently used terms from memory, until a quarter of the memory's limit is free. The archive
        must contain all terms.
        """
        now = self.memory.tick()
        for oldest in range(max(now - _AGES, 0), now + 2):
            self.memory.sweep(oldest)
            if self.memory.size() <= self._most * 3 // 4:
                break
        self._aged = self.memory.size()
