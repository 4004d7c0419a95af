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
from penstock.wire import DictionaryEntry, encode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from penstock.core._native import Ids, TermTuple
    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics

MAX_REQUEST_BYTES = 64 << 20
"""Maximum size of the terms of a request or response, in bytes."""
_DECODED_AT_ONCE = 16  # terms of a response that are decoded between two checks of the response's size
_BLANKS = 4_096  # number of blank nodes per reservation in the topic
_BLANK_KEY = b"blank nodes"
_TRIES = 5


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
        fresh = [asked[i] for i in np.flatnonzero(found == 0)]
        _check_terms(fresh)
        self._held.check_left(len(fresh))
        blanks = len({term[1] for term in terms if term[0] == BLANK})
        self._make_durable(fresh, blanks)
        ids = self._terms.intern_many(terms)
        self.known.trim()
        return ids

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals, 0 for unknown terms. Assigns no ids."""
        self._check_whole()
        _check_number(terms)
        ids = self._held.find(terms)
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

    def _make_durable(self, fresh: Sequence[TermTuple], blanks: int) -> None:
        """Intern new terms and write these terms to the topic. `blanks`: number of blank nodes that the request needs.

        Clients must not see an id that is not durable. The instance therefore serves no further request if several
        attempts to write fail, or if any other error occurs.
        """
        needed = self._terms.blank_count() + blanks
        reserves = needed > self.known.reserved
        if reserves and needed + _BLANKS > OWN_BLANKS:
            raise LimitError("the cluster has used up its blank nodes")
        if not fresh and not reserves:
            return
        self._broken = True
        records = [self._entry(term, id_) for term, id_ in zip(fresh, self._held.claim(fresh), strict=True)]
        if reserves:
            self.known.reserved = needed + _BLANKS
            records.append(self._reservation(self.known.reserved))
        self._commit(records)
        self._broken = False

    def _entry(self, term: TermTuple, id_: np.uint64) -> Record:
        """Return the record of a term for the topic."""
        signed = int(id_.astype(np.int64))
        return Record(self._topic, encode(DictionaryEntry(signed, *term)), record_key(term))

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
