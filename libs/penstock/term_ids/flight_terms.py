"""The network client of the dictionary service: batched, columnar look-ups by Arrow Flight.

A request is one exchange: the client writes a table (`term_tables`), and the server responds with a table. If the
server raises a DataError or LimitError, the client raises an error of the same class. With certificates, both sides
authenticate by TLS (ADR 71).
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import flight

from penstock.core import _native as native
from penstock.errors import DataError, LimitError, PenstockError, StorageError
from penstock.log import TransientError
from penstock.rdf.terms import BLANK
from penstock.term_ids.term_tables import (
    DECODE,
    ENCODE,
    FIND,
    FORGET,
    IDS,
    MARK,
    MAX_TERMS,
    TERMS,
    TRANSIENT,
    table_terms,
    terms_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from penstock.core._native import Ids, TermTuple
    from penstock.term_ids.peer_certificates import PeerCertificates

_ANSWER_S = 10.0
_ASKED_BYTES = 16 << 20
"""Maximum size of the terms of a request, in bytes, unless a single term is larger."""
_MAX_CACHED, _MAX_CACHED_BYTES = 1_000_000, 256 << 20
_PLAIN, _TLS = "grpc://", "grpc+tls://"
_ERRORS: dict[str, type[PenstockError]] = {"DataError": DataError, "LimitError": LimitError}


class FlightTerms:
    """A client of the dictionary service. `locations`: the addresses of the instances. The client tries the instances
    in turn until the active instance responds. TransientError if no instance responds. Any thread can call the methods.

    `certificates`: the certificates of this process. With certificates, the client connects by TLS, and all addresses
    must begin with `grpc+tls://`. After a failed request, the client reads the certificate files again if the files
    have changed. StorageError if the certificates or an address cannot be used.
    """

    def __init__(self, locations: Sequence[str], certificates: PeerCertificates | None = None) -> None:
        _check_scheme(locations, certificates)
        self._certificates = certificates
        self._stamp = None if certificates is None else certificates.stamp()
        self._options = {} if certificates is None else certificates.client_options()
        self._clients = {location: flight.FlightClient(location, **self._options) for location in locations}
        self._order = list(locations)
        self._cache = _Cache()
        self._lock = Lock()

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms; see `TermService.encode`."""
        with self._lock:
            return self._cache.encode(terms, self._encode)

    def _encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Encode terms in several requests. Each distinct term is in only one request. Otherwise, two requests would
        assign two nodes to the same label of a blank node.
        """
        distinct = {term: place for place, term in enumerate(dict.fromkeys(terms))}
        requested = list(distinct)
        parts = [self._ids(ENCODE, terms_table(requested[rows])) for rows in _pieces(list(map(_size, requested)))]
        ids = np.concatenate([np.empty(0, np.uint64), *parts])
        return ids[[distinct[term] for term in terms]]

    def encode_columns(self, kinds: pa.Array, lexicals: pa.Array, datatypes: pa.Array, langs: pa.Array) -> Ids:
        """Return the ids of terms that are given as columns. Does not use the cache, because the callers of this method
        need each term only once.
        """
        table = pa.table([kinds, lexicals, datatypes, langs], schema=TERMS)
        lengths = [pc.fill_null(pc.binary_length(column), 0).to_numpy() for column in table.columns[1:]]
        with self._lock:
            pieces = _pieces(np.sum(lengths, axis=0).tolist())
            parts = [self._ids(ENCODE, table.slice(rows.start, rows.stop - rows.start)) for rows in pieces]
            return np.concatenate([np.empty(0, np.uint64), *parts])

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals, or 0 for unknown terms. Does not use the cache, because an unknown term
        can get an id later.
        """
        with self._lock:
            parts = [self._ids(FIND, terms_table(terms[rows])) for rows in _pieces(list(map(_size, terms)))]
            return np.concatenate([np.empty(0, np.uint64), *parts])

    def encode_transient(self, terms: Sequence[TermTuple], generation: int) -> Ids:
        """Return the ids of IRIs and literals that are requested in a generation; see `TransientEncoder`. Does not use
        the cache, because transient terms can be removed.
        """
        verb = f"{TRANSIENT}{generation}"
        with self._lock:
            parts = [self._ids(verb, terms_table(terms[rows])) for rows in _pieces(list(map(_size, terms)))]
            return np.concatenate([np.empty(0, np.uint64), *parts])

    def forget(self, generation: int) -> int:
        """Remove some of the transient terms that were last requested before a generation. Return the number of removed
        terms. 0 means that no such terms are left.
        """
        with self._lock:
            return int(self._ids(f"{FORGET}{generation}", pa.table([pa.array([], pa.uint64())], schema=IDS))[0])

    def _ids(self, verb: str, table: pa.Table) -> Ids:
        found: Ids = self._ask(verb, table).column("id").to_numpy()
        return found

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms of ids of IRIs and literals. DataError for an unknown id."""
        with self._lock:
            return [term for table in self._tables(DECODE, ids) for term in table_terms(table)]

    def decode_marked(self, ids: Ids) -> tuple[list[TermTuple], NDArray[np.uint8]]:
        """Return the terms of ids, and a flag for each term. The flag is 1 if the dictionary can remove the term (ADR
        50). For errors, see `decode`.
        """
        with self._lock:
            tables = self._tables(MARK, ids)
        marks = [table.column("transient").to_numpy() for table in tables]
        return [term for table in tables for term in table_terms(table)], np.concatenate(
            [np.empty(0, np.uint8), *marks]
        )

    def _tables(self, verb: str, ids: Ids) -> list[pa.Table]:
        parts = (ids[first : first + MAX_TERMS] for first in range(0, len(ids), MAX_TERMS))
        return [table for part in parts for table in self._decode(verb, part)]

    def _decode(self, verb: str, ids: Ids) -> list[pa.Table]:
        """Fetch terms. If the response would be too large, split the request in halves."""
        try:
            return [self._ask(verb, pa.table([pa.array(ids)], schema=IDS))]
        except LimitError:
            if len(ids) < 2:
                raise
        half = len(ids) // 2
        return [*self._decode(verb, ids[:half]), *self._decode(verb, ids[half:])]

    def _ask(self, verb: str, table: pa.Table) -> pa.Table:
        failed = ""
        for location in list(self._order):
            try:
                return self._exchange(location, verb, table)
            except flight.FlightServerError as error:
                name, _, message = str(error).partition(": ")
                raise _ERRORS.get(name, PenstockError)(message.split(". Detail:")[0]) from error
            except (flight.FlightUnavailableError, flight.FlightTimedOutError, pa.ArrowException) as error:
                failed = f"{location}: {error}"
                self._order = [*self._order[1:], self._order[0]]
        self._renew()
        hint = "" if self._certificates is None else " (if it refuses this process's certificate, its log says why)"
        raise TransientError(f"no dictionary responds{hint}: {failed}")

    def _renew(self) -> None:
        """Connect again with the new certificate, if the certificate files have changed and can be used."""
        if self._certificates is None or (stamp := self._certificates.stamp()) in ((), self._stamp):
            return
        try:
            self._options = self._certificates.client_options()
        except StorageError:
            return  # half written: the next failure tries again
        self._stamp = stamp
        for location, client in list(self._clients.items()):
            client.close()
            self._clients[location] = flight.FlightClient(location, **self._options)

    def _exchange(self, location: str, verb: str, table: pa.Table) -> pa.Table:
        options = flight.FlightCallOptions(timeout=_ANSWER_S)
        descriptor = flight.FlightDescriptor.for_command(verb.encode())
        writer, reader = self._clients[location].do_exchange(descriptor, options)
        with writer:
            writer.begin(table.schema)
            writer.write_table(table)
            writer.done_writing()
            return reader.read_all()

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients.values():
            client.close()


def _check_scheme(locations: Sequence[str], certificates: PeerCertificates | None) -> None:
    needed, given = (_PLAIN, "without") if certificates is None else (_TLS, "with")
    for location in locations:
        if location.startswith((_PLAIN, _TLS)) and not location.startswith(needed):
            raise StorageError(
                f"{location}: {given} PENSTOCK_TLS_CERTIFICATE, a dictionary's address is {needed}host:port"
            )


def _size(term: TermTuple) -> int:
    """Return an upper bound on a term's size in bytes. UTF-8 uses at most four bytes per character."""
    return 4 * (len(term[1]) + len(term[2]) + len(term[3]))


def _pieces(sizes: Sequence[int]) -> Iterator[slice]:
    """Split rows into slices. A request with one slice does not exceed the limits on bytes and terms. `sizes`: the size
    of each row in bytes.
    """
    first = held = 0
    for row, size in enumerate(sizes):
        if row > first and (held + size > _ASKED_BYTES or row - first == MAX_TERMS):
            yield slice(first, row)
            first, held = row, 0
        held += size
    if first < len(sizes):
        yield slice(first, len(sizes))


class _Cache:
    """A bounded cache of global ids. It consists of a native dictionary and the global id of each term in this
    dictionary.
    """

    def __init__(self) -> None:
        self._own = native.Dictionary()
        self._ids: dict[int, int] = {}

    def encode(self, terms: Sequence[TermTuple], ask: Callable[[Sequence[TermTuple]], Ids]) -> Ids:
        if len(self._ids) > _MAX_CACHED or self._own.bytes() > _MAX_CACHED_BYTES:
            self._own, self._ids = native.Dictionary(), {}
        if any(term[0] == BLANK for term in terms):
            return ask(terms)
        own = self._own.intern_many(terms).tolist()
        fresh = {id_: term for id_, term in zip(own, terms, strict=True) if id_ not in self._ids}
        if fresh:
            self._ids.update(zip(fresh, ask(list(fresh.values())).tolist(), strict=True))
        return np.array([self._ids[id_] for id_ in own], np.uint64)
