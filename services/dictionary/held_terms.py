"""The terms of a dictionary instance. Either the memory contains all terms, or the archive contains all terms and the
memory contains the recently used terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.errors import DataError, LimitError
from penstock.rdf.id_layout import PAYLOAD, TAG_IRI, TAG_LITERAL, TAG_SHIFT
from penstock.rdf.terms import BLANK, LITERAL
from penstock.services.dictionary.term_archive import ArchiveState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
        self._new_transient: set[int] = set()  # those of them that can be removed
        self.generation = 0  # the latest generation (ADR 50)
        self.expected: int | None = None  # see `ArchiveState`
        if archive is not None:
            self.memory.attach(archive)
            self._next_slot = archive.state.next_slot
            self.generation, self.expected = archive.state.generation, archive.state.expected

    @property
    def removes(self) -> bool:
        """Whether terms can be removed. This requires an archive."""
        return self._archive is not None

    @property
    def next_slot(self) -> int:
        """The slot of the next new term."""
        return native.next_slot(self.memory) if self._archive is None else self._next_slot

    @property
    def size(self) -> int:
        """The number of terms, in memory and in the archive."""
        return self.memory.size() if self._archive is None else self._archive.state.terms + len(self._new)

    @property
    def full(self) -> bool:
        """Whether terms should leave the memory."""
        return self._archive is not None and self.memory.size() > self._most

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, 0 for unknown terms. Terms that are only in the archive are read into memory."""
        ids = self.memory.find_many(terms)
        if self._archive is None or self._archive.state.terms == 0:
            return ids
        missing = [i for i in np.flatnonzero(ids == 0).tolist() if terms[i][0] != BLANK]
        if missing:
            asked = self.canonical([terms[i] for i in missing])
            found = self._archive.find(asked)
            known = np.flatnonzero(found)
            self.memory.adopt(found[known], [asked[i] for i in known])
            ids[missing] = found
        return ids

    def claim(self, terms: Sequence[TermTuple], *, transient: bool = False) -> Ids:
        """Return the ids of IRIs and literals. New terms get ids. LimitError if there are not enough ids. `transient`:
        whether the new terms can be removed.
        """
        if self._archive is None:
            self.check_left(len(terms))
            ids = self.memory.intern_many(terms)
            self.memory.keep(ids)
            return ids
        ids = self.find(terms)
        missing = np.flatnonzero(ids == 0).tolist()
        if missing:
            asked = self.canonical([terms[i] for i in missing])
            new = list(dict.fromkeys(asked))
            self.check_left(len(new))
            slots = np.arange(self._next_slot, self._next_slot + len(new), dtype=np.uint64)
            literal = np.array([term[0] == LITERAL for term in new])
            given = slots | (np.where(literal, TAG_LITERAL, TAG_IRI) << TAG_SHIFT)
            self._add(given, new, given.tolist() if transient else ())
            self._next_slot += len(new)
            by_term = dict(zip(new, given.tolist(), strict=True))
            ids[missing] = [by_term[term] for term in asked]
        return ids

    def _add(self, ids: Ids, terms: Sequence[TermTuple], transient: Iterable[int]) -> None:
        self.memory.adopt(ids, terms)
        self._new += ids.tolist()
        self._new_transient.update(transient)
        if self.expected is not None:
            self.expected += len(terms)

    def put(self, ids: Ids, terms: Sequence[TermTuple], transient: set[int]) -> None:
        """Add entries of the topic. An entry of a known term makes the term permanent, unless its id is in `transient`.
        With an archive only. DataError if a term or an id is known otherwise.
        """
        known = self.find(terms)
        changed = [id_ for id_, found in zip(ids.tolist(), known.tolist(), strict=True) if found == id_]
        self.keep([id_ for id_ in changed if id_ not in transient])
        if wrong := np.flatnonzero((known != ids) & (known != 0)).tolist():
            raise DataError(f"{terms[wrong[0]][1]!r} has id {int(ids[wrong[0]])}, not {int(known[wrong[0]])}")
        fresh = np.flatnonzero(known == 0)
        given, first = np.unique(ids[fresh], return_index=True)
        added = self.canonical([terms[i] for i in fresh[first].tolist()])
        self._add(given, added, transient.intersection(given.tolist()))
        self._next_slot = max(self._next_slot, int((given & PAYLOAD).max(initial=0)) + 1)

    def keep(self, ids: Sequence[int]) -> None:
        """Make terms permanent. Their entries in the topic are permanent."""
        self._new_transient.difference_update(ids)
        if self._archive is not None and ids:
            self._archive.keep(ids)

    def transient(self, ids: Ids) -> set[int]:
        """Return the ids of the terms that can be removed."""
        if self._archive is None:
            return set()
        asked = list(set(ids.tolist()) - {0})
        return self._new_transient.intersection(asked) | self._archive.transient(asked)

    def used(self, ids: Ids) -> None:
        """Record that transient terms were requested in the latest generation."""
        if self._archive is not None:
            self._archive.used(list(set(ids.tolist())), self.generation)

    def unused(self, generation: int, most: int) -> list[int]:
        """Return the ids of at most `most` terms in the archive that can be removed (`TermArchive.unused`)."""
        return [] if self._archive is None else self._archive.unused(generation, most)

    def ids_of(self, keys: Sequence[bytes]) -> list[int]:
        """Return the ids of terms in the archive by their keys in the topic."""
        assert self._archive is not None, "only archived terms are removed"
        return self._archive.ids_of(keys)

    def remove(self, ids: Sequence[int], position: int, reserved: int) -> None:
        """Remove terms. The archive must contain all terms. The topic's records before offset `position` remove them.
        StorageError if the archive cannot be written.
        """
        assert self._archive is not None, "only archived terms are removed"
        assert not self._new, "only archived terms are removed"
        if self.expected is not None:
            self.expected -= len(ids)
        self._archive.remove(ids, self._state(position, reserved, self._archive.state.terms - len(ids)))
        self.memory.drop(np.array(ids, np.uint64))

    def apply_state(self, terms: int, next_slot: int, generation: int) -> None:
        """Apply a `DictionaryState` of the topic."""
        self.expected, self.generation = terms, max(self.generation, generation)
        self._next_slot = max(self._next_slot, next_slot)

    def _state(self, position: int, reserved: int, terms: int) -> ArchiveState:
        assert self._archive is not None, "states are those of an archive"
        promised = max(position, self._archive.state.promised)
        return ArchiveState(position, promised, reserved, self._next_slot, terms, self.generation, self.expected)

    def check_left(self, needed: int) -> None:
        """Raise LimitError if there are not enough ids for new terms. `needed`: the number of new terms."""
        if self.next_slot + needed > native.PRIVATE_SLOTS:
            raise LimitError(f"the cluster has used up its ids: {native.PRIVATE_SLOTS - 1} terms")

    def canonical(self, terms: Sequence[TermTuple]) -> list[TermTuple]:
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
        self._archive.append(self._new, terms, self._state(position, reserved, self.size), self._new_transient)
        self._new, self._new_transient = [], set()

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
