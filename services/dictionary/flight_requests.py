"""Requests of the dictionary's Flight server, checked as they are read.

The server is unauthenticated, so each request is bounded by rows and bytes, and all requests together by number and
bytes. A request beyond a bound is refused as soon as it exceeds it. gRPC hands over whole messages: how large one may
be, `flight_gate` decides.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import DataError, LimitError
from penstock.log import TransientError
from penstock.services.dictionary.dictionary import MAX_REQUEST_BYTES
from penstock.term_ids.term_tables import MAX_TERMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyarrow import flight

MAX_CALLS = 1_024
"""Requests that one dictionary reads or answers at a time; those beyond are told to try again."""
MAX_HELD_BYTES = 4 * MAX_REQUEST_BYTES
"""Bytes of requests that one dictionary holds at a time; those beyond are told to try again."""
_FRAMING_BYTES = 4_096  # what a part costs beside its columns: a request of empty parts ends, too
_ROW_BYTES = 4 * 8  # of a row, beside its text


class Requests:
    """All requests that are being read or answered. Any thread."""

    def __init__(self, max_calls: int = MAX_CALLS, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_calls, self._max_held_bytes = max_calls, max_held_bytes
        self._lock = Lock()
        self._calls = 0
        self.held_bytes = 0

    @contextmanager
    def reading(self) -> Iterator[Intake]:
        """Admit a request, and count what it holds until the end. TransientError where there are too many."""
        with self._lock:
            if self._calls >= self._max_calls:
                raise TransientError(f"{self._calls} requests at a time (MAX_CALLS): try again")
            self._calls += 1
        intake = Intake(self)
        try:
            yield intake
        finally:
            with self._lock:
                self._calls -= 1
                self.held_bytes -= intake.size

    def take(self, size: int) -> None:
        """Count bytes. TransientError where all requests together hold too many."""
        with self._lock:
            if self.held_bytes + size > self._max_held_bytes:
                raise TransientError(
                    f"requests hold more than {self._max_held_bytes} bytes (MAX_HELD_BYTES): try again"
                )
            self.held_bytes += size


class Intake:
    """One request as it is read."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.size = 0

    def table(self, reader: flight.MetadataRecordBatchReader, schema: pa.Schema) -> pa.Table:
        """Read a request. DataError where it is no table of that schema, LimitError beyond a bound."""
        batches: list[pa.RecordBatch] = []
        rows = 0
        try:
            for chunk in reader:
                batch = chunk.data
                size = _FRAMING_BYTES + (0 if batch is None else batch.nbytes)
                rows += 0 if batch is None else batch.num_rows
                self._check(rows, size)
                if batch is not None:
                    batches.append(_checked(batch, schema))
            return pa.Table.from_batches(batches, schema)
        except pa.ArrowException as error:
            raise DataError(f"not a table of {', '.join(schema.names)}: {error}") from error

    def _check(self, rows: int, size: int) -> None:
        if rows > MAX_TERMS:
            raise LimitError(f"more than {MAX_TERMS} terms in one request (MAX_TERMS)")
        if self.size + size > MAX_REQUEST_BYTES + MAX_TERMS * _ROW_BYTES:
            raise LimitError(f"more than {MAX_REQUEST_BYTES} bytes in one request (MAX_REQUEST_BYTES)")
        self._requests.take(size)
        self.size += size


def _checked(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a part whose buffers hold what they claim: they come from the network as they are."""
    if not batch.schema.equals(schema):
        raise DataError(f"a request has the columns {schema.names}, not {batch.schema.names}")
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise DataError("a request has no nulls")
    return batch
