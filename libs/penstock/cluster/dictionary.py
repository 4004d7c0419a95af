"""The dictionary service: gives ids to terms, and every id is durable in the dictionary topic before anybody sees it.

The native dictionary is its store. Ids are slots in order of arrival, so reading the topic from its start gives every
term its id again; that this is so is checked entry by entry.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import numpy as np

from penstock.cluster.terms import OWN_BLANKS
from penstock.errors import DataError, LimitError, StorageError
from penstock.log import START, Partition, Record, TransientError
from penstock.rdf.terms import BLANK
from penstock.store import _native as native
from penstock.wire import DictionaryEntry, decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.cluster.topics import ClusterTopics
    from penstock.engine.answers import Ids
    from penstock.log import Log, Message
    from penstock.store._native import TermTuple

MAX_TERMS = 100_000
"""Terms that one request may carry."""
_BLANKS = 4_096  # blank nodes are reserved in the topic so many at a time
_BLANK_KEY = b"blank nodes"
_TRIES = 5


class DictionaryService:
    """The active instance. Opening it fences the one before; every call of that one raises FencedError from then on."""

    def __init__(self, log: Log, topics: ClusterTopics, timeout_s: float = 300.0) -> None:
        self._topic = topics.names.dictionary
        self._writer = log.transactional(f"{topics.names.prefix}.dictionary")
        self._terms = native.Dictionary()
        self._reserved = 0
        reader = log.reader({Partition(self._topic): START})
        try:
            deadline = time.monotonic() + timeout_s
            while not reader.caught_up():
                for message in reader.poll(10_000, min(timeout_s, 0.05)):
                    self._replay(message)
                if time.monotonic() > deadline and not reader.caught_up():
                    raise TransientError(f"the dictionary's log was not read to its end within {timeout_s} s")
        finally:
            reader.close()
        self._decoder = native.LocalTerms(self._terms)
        self._terms.reserve_blanks(self._reserved)
        self._known = self._terms.size()

    def __len__(self) -> int:
        return self._terms.size()

    def _replay(self, message: Message) -> None:
        entry = decode(message.value or b"")
        if not isinstance(entry, DictionaryEntry):
            raise StorageError(f"{self._topic}, offset {message.offset}: no entry of the dictionary")
        if entry.kind == BLANK:
            self._reserved = max(self._reserved, entry.id)
            return
        found = self._terms.intern(entry.kind, entry.lexical, entry.datatype, entry.lang)
        if found != np.uint64(entry.id & (1 << 64) - 1):
            raise StorageError(
                f"{self._topic}, offset {message.offset}: {entry.lexical!r} has id {entry.id}, not {found}"
            )

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, durable by now. TransientError, and nothing is given out, where the log is away."""
        if len(terms) > MAX_TERMS:
            raise LimitError(f"{len(terms)} terms in one request (at most {MAX_TERMS})")
        fresh = list(dict.fromkeys(t for t in terms if t[0] != BLANK and not self._terms.find(*t)))
        for term in fresh:
            native.check_term(*term)
        blanks = len({term[1] for term in terms if term[0] == BLANK})
        self._make_durable(fresh, blanks)
        return self._terms.intern_many(terms)

    def _make_durable(self, fresh: Sequence[TermTuple], blanks: int) -> None:
        """Intern new terms and write them. The interned ones stay where the write fails, so it is tried to the end."""
        records = []
        for term in fresh:
            own = self._terms.intern(*term)
            signed = int(np.uint64(own).astype(np.int64))
            records.append(Record(self._topic, encode(DictionaryEntry(signed, *term)), json.dumps(term).encode()))
        needed = self._terms.blank_count() + blanks
        if needed > self._reserved:
            if needed + _BLANKS > OWN_BLANKS:
                raise LimitError("the cluster has used up its blank nodes")
            self._reserved = needed + _BLANKS
            entry = DictionaryEntry(self._reserved, BLANK, "", "", "")
            records.append(Record(self._topic, encode(entry), _BLANK_KEY))
        if records:
            self._terms.keep(np.array([self._terms.find(*term) for term in fresh], np.uint64))
            self._commit(records)

    def _commit(self, records: Sequence[Record]) -> None:
        """An id that is interned and not durable must not be seen: after some tries the instance ends."""
        for attempt in range(_TRIES):
            try:
                self._writer.commit(records)
            except TransientError as error:
                if attempt + 1 == _TRIES:
                    raise StorageError(f"the dictionary cannot write its log: {error}") from error
            else:
                return

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms of ids; DataError for one that names nothing."""
        self._terms.check(ids)
        found = [term for term in self._decoder.decode(ids) if term is not None]
        if len(found) != len(ids):
            raise DataError("id 0 is no term")
        return found

    def close(self) -> None:
        """Let go."""
        self._writer.close()
