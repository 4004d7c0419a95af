"""The dictionary's Flight server: serves batched, columnar look-ups.

A request is one exchange: the client writes a table (`term_tables`), and the server responds with a table. If the
server raises a DataError or LimitError, the client raises an error of the same class. The server validates a request
while it reads the request (`flight_requests`). Before that, the gate limits the bytes of the request, and authenticates
the client if there are certificates (`flight_gate`).
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
from pyarrow import flight

from penstock.errors import DataError, LimitError, PenstockError
from penstock.http.security.certificates import Renewal
from penstock.log import TransientError
from penstock.services.dictionary.flight_gate import FlightGate
from penstock.services.dictionary.flight_requests import Requests
from penstock.term_ids.term_tables import (
    DECODE,
    ENCODE,
    FIND,
    FORGET,
    IDS,
    MARK,
    TERMS,
    TRANSIENT,
    table_terms,
    terms_table,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.services.dictionary.dictionary import DictionaryService
    from penstock.services.dictionary.flight_gate import GateLimits
    from penstock.term_ids.peer_certificates import PeerCertificates

_VERB_BYTES = 32
_VERB = re.compile(f"{ENCODE}|{FIND}|{DECODE}|{MARK}|({TRANSIENT}|{FORGET})([0-9]{{1,18}})")
_log = logging.getLogger("penstock.dictionary")


class DictionaryServer(flight.FlightServerBase):  # type: ignore[misc]
    """Serves the dictionary that `active` returns. On standby, `active` returns None, and the server rejects all
    requests as unavailable. The server executes one request at a time, because the dictionary has one writer.

    `location`: `grpc://host:port`; port 0 means any free port. Clients connect to a gate, which limits requests.
    `certificates`: if given, clients must connect by TLS, with a certificate of the CA in `certificates`. If None, any
    client can connect, without TLS. `broken`: the error after which the server rejects all requests, or None.
    """

    def __init__(
        self,
        location: str,
        active: Callable[[], DictionaryService | None],
        limits: GateLimits | None = None,
        certificates: PeerCertificates | None = None,
    ) -> None:
        context = None if certificates is None else certificates.server_context(["h2"])
        where = urlsplit(location)
        self._folder = TemporaryDirectory(prefix="penstock-flight-")  # accessible to the owner only
        inside = Path(self._folder.name) / "socket"
        super().__init__(f"grpc+unix://{inside}")
        self._gate = FlightGate(where.hostname or "127.0.0.1", where.port or 0, inside, limits, context)
        self._renewal = None
        if certificates is not None and context is not None:
            self._renewal = Renewal(certificates.served, context, _log)
        self._active = active
        self._requests = Requests()
        self.lock = Lock()
        self.broken: PenstockError | None = None

    @property
    def port(self) -> int:
        """The port to which clients connect."""
        return self._gate.port

    def shutdown(self) -> None:
        """Stop serving."""
        if self._renewal is not None:
            self._renewal.stop()
        self._gate.close()
        super().shutdown()
        self._folder.cleanup()

    def do_exchange(
        self,
        context: flight.ServerCallContext,  # noqa: ARG002
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.MetadataRecordBatchWriter,
    ) -> None:
        """Serve one request."""
        verb = descriptor.command[:_VERB_BYTES].decode("utf-8", "replace")
        if _VERB.fullmatch(verb) is None:
            raise _refused(DataError(f"unknown verb {verb!r}"))
        try:
            with self._requests.reading() as intake:
                found = self._found(
                    verb, intake.table(reader, IDS if verb in (DECODE, MARK) or verb.startswith(FORGET) else TERMS)
                )
        except (DataError, LimitError) as error:
            raise _refused(error) from error
        except TransientError as error:
            raise flight.FlightUnavailableError(str(error)) from error
        writer.begin(found.schema)
        writer.write_table(found)

    def _found(self, verb: str, table: pa.Table) -> pa.Table:
        """Execute a request. If the dictionary cannot write its log, the server rejects all later requests, because
        some terms in memory are possibly not durable.
        """
        with self.lock:
            service = self._active()
            if service is None or self.broken is not None:
                raise flight.FlightUnavailableError("this dictionary is on standby")
            try:
                return self._answer(service, verb, table)
            except (DataError, LimitError):
                raise
            except PenstockError as error:  # fenced, or the write failed
                self.broken = error
                raise flight.FlightUnavailableError(f"this dictionary ends: {error}") from error

    @staticmethod
    def _answer(service: DictionaryService, verb: str, table: pa.Table) -> pa.Table:
        if verb == ENCODE:
            return pa.table([pa.array(service.encode(table_terms(table)))], schema=IDS)
        if verb == FIND:
            return pa.table([pa.array(service.find(table_terms(table)))], schema=IDS)
        if verb.startswith(TRANSIENT):
            generation = int(verb.removeprefix(TRANSIENT))
            return pa.table([pa.array(service.encode_transient(table_terms(table), generation))], schema=IDS)
        if verb.startswith(FORGET):
            removed = service.forget(int(verb.removeprefix(FORGET)))
            return pa.table([pa.array([removed], pa.uint64())], schema=IDS)
        if verb == MARK:
            terms, marks = service.decode_marked(table.column("id").to_numpy().astype(np.uint64))
            return terms_table(terms).append_column("transient", pa.array(marks))
        return terms_table(service.decode(table.column("id").to_numpy().astype(np.uint64)))


def _refused(error: PenstockError) -> flight.FlightServerError:
    return flight.FlightServerError(f"{type(error).__name__}: {error}")
