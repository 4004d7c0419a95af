"""Requests of the dictionary's Flight server. A request is validated while the server reads the request.

Without TLS, clients are not authenticated. The server therefore limits the rows and bytes of each request, and the
number and bytes of all concurrent requests. The server rejects a request as soon as the request exceeds a limit. gRPC
delivers only whole messages, so `flight_gate` limits the size of messages.
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
"""Maximum number of concurrent requests. The server rejects further requests with a retryable error."""
MAX_HELD_BYTES = 2 * MAX_REQUEST_BYTES
"""Maximum size of all concurrent requests, in bytes. Beyond this size, the server rejects a request with a retryable
error.
"""
_FRAMING_BYTES = 4_096  # added per message of a request, so that empty messages are limited too
_ROW_BYTES = 4 * 8  # added per row of a request, in addition to the row's text


class Requests:
    """The number of requests in progress, and the number of bytes that these requests hold. Any thread can call the
    methods.
    """

    def __init__(self, max_calls: int = MAX_CALLS, max_held_bytes: int = MAX_HELD_BYTES) -> None:
        self._max_calls, self._max_held_bytes = max_calls, max_held_bytes
        self._lock = Lock()
        self._calls = 0
        self.held_bytes = 0

    @contextmanager
    def reading(self) -> Iterator[Intake]:
        """Admit a request. The request's bytes count until the `with` statement ends. TransientError if there are too
        many requests.
        """
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
        """Add `size` to the number of bytes that requests hold. TransientError if the requests would hold too many
        bytes.
        """
        with self._lock:
            if self.held_bytes + size > self._max_held_bytes:
                raise TransientError(
                    f"requests hold more than {self._max_held_bytes} bytes (MAX_HELD_BYTES): try again"
                )
            self.held_bytes += size


class Intake:
    """One request that is being read."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self.size = 0

    def table(self, reader: flight.MetadataRecordBatchReader, schema: pa.Schema) -> pa.Table:
        """Read the table of a request. DataError if the table does not have the schema, LimitError if the table exceeds
        a limit, TransientError if all requests together hold too many bytes.
        """
        batches: list[pa.RecordBatch] = []
        rows = 0
        try:
            _check_schema(reader.schema, schema)  # before any batch is read: columns of other types can be much larger
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


def _check_schema(found: pa.Schema, schema: pa.Schema) -> None:
    if not found.equals(schema):
        raise DataError(f"a request has the columns {schema.names}, not {found.names}")


def _checked(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Validate a record batch from the network, including its buffers. DataError if its columns are wrong or contain
    nulls.
    """
    _check_schema(batch.schema, schema)
    batch.validate(full=True)
    if any(column.null_count for column in batch.columns):
        raise DataError("a request has no nulls")
    return batch
