"""The dictionary service: assigns ids to terms. The service writes each term and id to the dictionary topic before a
client sees the id.

The native dictionary contains the terms; `known_terms` reads the topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.errors import DataError, LimitError, StorageError
from penstock.log import Record, TransientError
from penstock.rdf.terms import BLANK, check_term_size, term_bytes
from penstock.services.dictionary.known_terms import KnownTerms
from penstock.services.dictionary.record_keys import record_key
from penstock.term_ids.cluster_terms import OWN_BLANKS
from penstock.term_ids.term_tables import MAX_TERMS
from penstock.wire import DictionaryEntry, DictionaryState, encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTuple
    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics

MAX_REQUEST_BYTES = 64 << 20
"""Maximum size of the terms of a request or response, in bytes."""
_DECODED_AT_ONCE = 16  # terms of a response that are decoded between two checks of the response's size
_BLANKS = 4_096  # number of blank nodes per reservation in the topic
_BLANK_KEY = b"blank nodes"
_STATE_KEY = b"state"
_TRIES = 5
_REMOVED_AT_ONCE = 16_384  # terms per transaction


class DictionaryService:
    """The active instance. Its construction fences the previous instance, which can then no longer write.

    `known`: the terms that this process has read from the topic. The constructor reads the rest of the topic and closes
    the reader of `known`. From then on, the service itself adds new terms to `known`.
    """

    def __init__(
        self, log: Log, topics: ClusterTopics, timeout_s: float = 300.0, known: KnownTerms | None = None
    ) -> None:
        self._topic = topics.names.dictionary
        self._writer = log.transactional(f"{topics.names.prefix}.dictionary")
        self.known = known or KnownTerms(log, topics.names)
        self._catch_up(timeout_s)
        self._held = self.known.held
        self._terms = self._held.memory
        self._decoder = native.LocalTerms(self._terms)
        self._terms.reserve_blanks(self.known.reserved)
        self._first_generation = (
            self._held.generation
        )  # terms from before this instance were last requested in it, or earlier
        self._broken = False  # whether the native dictionary possibly contains terms that are not durable

    def _catch_up(self, timeout_s: float) -> None:
        """Read the topic to its end. StorageError if the topic lacks terms that a snapshot contains.

        After a crash, brokers can report an end of the topic that is too early, until the next write. If the reported
        end precedes the snapshot's offset, this method therefore commits a record and reads again.
        """
        self.known.finish(timeout_s)
        if self.known.position < self.known.promised:
            self._writer.commit([self._reservation(self.known.reserved)])
            self.known.finish(timeout_s)
        if self.known.position < self.known.promised:
            raise StorageError(
                f"a snapshot of the dictionary reflects offset {self.known.promised} of {self._topic}, which ends "
                f"at {self.known.position}: it lost terms, or is another one"
            )
        self.known.close()

    def _reservation(self, reserved: int) -> Record:
        entry = DictionaryEntry(reserved, BLANK, "", "", "")
        return Record(self._topic, encode(entry), _BLANK_KEY)

    def __len__(self) -> int:
        return self._held.size

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the durable ids of terms. Assigns ids to new terms. A blank node label denotes one new node per call.
        The same label in another call denotes another node.

        DataError for an invalid term, LimitError above a limit. StorageError if the log cannot be written. This
        instance then possibly contains ids that are not durable, so all further calls fail.
        """
        self._check_whole()
        _check_number(terms)
        asked = list(dict.fromkeys(term for term in terms if term[0] != BLANK))
        found = self._held.find(asked)
        fresh = self._fresh(asked, found)
        self._held.check_left(len(fresh))
        blanks = len({term[1] for term in terms if term[0] == BLANK})
        self._make_durable(fresh, blanks, self._confirmations(asked, found))
        ids = self._terms.intern_many(terms)
        self.known.trim()
        return ids

    def _fresh(self, terms: Sequence[TermTuple], ids: Ids) -> list[TermTuple]:
        """Return the terms without an id, as the dictionary returns them. Errors: see `_check_terms`."""
        fresh = [terms[i] for i in np.flatnonzero(ids == 0).tolist()]
        _check_terms(fresh)
        return self._held.canonical(fresh)

    def encode_transient(self, terms: Sequence[TermTuple], generation: int) -> Ids:
        """Return the durable ids of IRIs and literals that are requested in a generation. New terms are transient: they
        can be removed if nobody requests them in a later generation (ADR 50). Without an archive, they are permanent.
        Errors: as for `encode`.
        """
        if not self._held.removes or generation <= 0:
            return self.encode(terms)
        self._check_whole()
        _check_number(terms)
        if any(term[0] == BLANK for term in terms):
            raise DataError("blank nodes are not transient")
        if generation > self._held.generation:
            self._begin_generation(generation)
        asked = list(dict.fromkeys(terms))
        found = self._held.find(asked)
        fresh = self._fresh(asked, found)
        self._held.check_left(len(fresh))
        if fresh:
            self._broken = True
            given = self._held.claim(fresh, transient=True)
            self._commit([self._entry(term, id_, transient=True) for term, id_ in zip(fresh, given, strict=True)])
            self._broken = False
        ids = self._terms.intern_many(terms)
        self._held.used(ids)
        self.known.trim()
        return ids

    def _begin_generation(self, generation: int) -> None:
        """Commit that this instance has reached a generation. An instance that is fenced fails here."""
        self._broken = True
        self._held.generation = generation
        self._commit([self._state(self._held.size)])
        self._broken = False

    def _state(self, terms: int) -> Record:
        self._held.expected = self._held.size
        state = DictionaryState(terms, self._held.next_slot, self._held.generation)
        return Record(self._topic, encode(state), _STATE_KEY)

    def _confirmations(self, terms: Sequence[TermTuple], ids: Ids) -> dict[int, TermTuple]:
        """Return the transient terms among known terms, by id."""
        transient = self._held.transient(ids)
        return {id_: term for id_, term in zip(ids.tolist(), terms, strict=True) if id_ in transient}

    def forget(self, generation: int) -> int:
        """Remove some of the transient terms that were last requested before a generation. Returns the number of
        removed terms. If it is 0, there are no such terms. DataError without an archive. Errors: as for `encode`.

        The caller guarantees that no process can use such a term's id any more.
        """
        self._check_whole()
        if not self._held.removes:
            raise DataError("the removal of terms needs an archive: set PENSTOCK_TERMS_IN_MEMORY")
        if generation <= self._first_generation:
            return 0
        self.known.archive_new()
        ids = self._held.unused(generation, _REMOVED_AT_ONCE)
        if not ids:
            return 0
        found = self._decoder.decode(np.array(ids, np.uint64))
        records = [Record(self._topic, None, record_key(term)) for term in found if term is not None]
        self._broken = True
        self._commit([*records, self._state(self._held.size - len(ids))])
        self._held.remove(ids, self.known.position, self.known.reserved)
        self._broken = False
        self.known.trim()
        return len(ids)

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals, 0 for unknown terms. Assigns no ids. The terms that are found become
        permanent, because the caller can use their ids at any time (ADR 50).
        """
        self._check_whole()
        _check_number(terms)
        ids = self._held.find(terms)
        self._make_durable((), 0, self._confirmations(terms, ids))
        self.known.trim()
        return ids

    def _check_whole(self) -> None:
        if self._broken:
            raise StorageError("this dictionary could not write its log, and rejects all requests")

    def archive_new(self) -> None:
        """Write new terms to the archive. StorageError if that fails."""
        self._check_whole()
        self.known.archive_new()

    def snapshot(self, folder: Path) -> None:
        """Write the files of a snapshot to a folder."""
        self._check_whole()
        self.known.snapshot(folder)

    def _make_durable(self, fresh: Sequence[TermTuple], blanks: int, confirmed: Mapping[int, TermTuple]) -> None:
        """Intern new terms and write these terms to the topic. `blanks`: number of blank nodes that the request needs.
        `confirmed`: transient terms that become permanent, by id.

        Clients must not see an id that is not durable. The instance therefore serves no further request if several
        attempts to write fail, or if any other error occurs.
        """
        needed = self._terms.blank_count() + blanks
        reserves = needed > self.known.reserved
        if reserves and needed + _BLANKS > OWN_BLANKS:
            raise LimitError("the cluster has used up its blank nodes")
        if not fresh and not reserves and not confirmed:
            return
        self._broken = True
        given = self._held.claim(fresh)
        records = [self._entry(term, id_) for term, id_ in zip(fresh, given, strict=True)]
        records += [self._entry(term, np.uint64(id_)) for id_, term in confirmed.items()]
        if reserves:
            self.known.reserved = needed + _BLANKS
            records.append(self._reservation(self.known.reserved))
        if confirmed:
            records.append(self._state(self._held.size))
        self._commit(records)
        self._held.keep(list(confirmed))
        self._broken = False

    def _entry(self, term: TermTuple, id_: np.uint64, *, transient: bool = False) -> Record:
        """Return the record of a term for the topic."""
        signed = int(id_.astype(np.int64))
        return Record(self._topic, encode(DictionaryEntry(signed, *term, transient)), record_key(term))

    def _commit(self, records: Sequence[Record]) -> None:
        for attempt in range(_TRIES):
            try:
                offsets = self._writer.commit(records)
            except TransientError as error:
                if attempt + 1 == _TRIES:
                    raise StorageError(f"the dictionary cannot write its log: {error}") from error
            else:
                self.known.wrote(offsets)
                return

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the term of each id. DataError for an unknown id, LimitError if the terms are too large."""
        self._check_whole()
        _check_number(ids)
        self._terms.check(ids)
        found: list[TermTuple] = []
        size = 0
        for first in range(0, len(ids), _DECODED_AT_ONCE):
            part = [term for term in self._decoder.decode(ids[first : first + _DECODED_AT_ONCE]) if term is not None]
            size += sum(map(term_bytes, part))
            if size > MAX_REQUEST_BYTES:
                raise LimitError(f"an answer of more than {MAX_REQUEST_BYTES} bytes (MAX_REQUEST_BYTES): ask for less")
            found += part
        if len(found) != len(ids):
            raise DataError("id 0 is no term")
        self.known.trim()
        return found

    def decode_marked(self, ids: Ids) -> tuple[list[TermTuple], NDArray[np.uint8]]:
        """Return the term of each id, and an array with 1 for each term that can be removed. Errors: see `decode`."""
        terms = self.decode(ids)
        transient = self._held.transient(ids)
        return terms, np.array([id_ in transient for id_ in ids.tolist()], np.uint8)

    def close(self) -> None:
        """Close the writer."""
        self._writer.close()


def _check_number(terms: Sequence[TermTuple] | Ids) -> None:
    if len(terms) > MAX_TERMS:
        raise LimitError(f"{len(terms)} terms in one request (MAX_TERMS is {MAX_TERMS})")


def _check_terms(terms: Sequence[TermTuple]) -> None:
    """Check new terms. DataError if a term is invalid or too large. LimitError if the total size of the terms is too
    large.
    """
    size = 0
    for term in terms:
        check_term_size(term)
        native.check_term(*term)
        size += term_bytes(term)
    if size > MAX_REQUEST_BYTES:
        raise LimitError(f"{size} bytes of terms in one request (MAX_REQUEST_BYTES is {MAX_REQUEST_BYTES})")
