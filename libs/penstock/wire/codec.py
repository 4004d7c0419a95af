"""Conversion of records to bytes and back.

The bytes are in Avro's single-object encoding, which consists of a marker, the fingerprint of the writer's schema, and
the body. The first ten bytes of a record identify the kind and version of the record. Readers therefore need no schema
registry.

A column is a field of the type `bytes`. numpy reads a column in place, without a loop over its values (ADR 25).
"""

from __future__ import annotations

import io
from dataclasses import fields
from functools import cache
from typing import Any, TypeAlias

import fastavro
import numpy as np

from penstock.errors import DataError
from penstock.wire import records
from penstock.wire.library import library

_MARKER = b"\xc3\x01"
_HEAD = len(_MARKER) + 8
_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        records.Tuples,
        records.ShardBatch,
        records.DispatcherState,
        records.ShardInsertion,
        records.ShardRemoval,
        records.ShardLoad,
        records.DictionaryEntry,
        records.DictionaryState,
        records.StreamDeclaration,
        records.StreamDrop,
        records.StreamPredicates,
        records.StreamEnd,
        records.QueryRegistration,
        records.QueryStop,
        records.Heartbeat,
        records.Placement,
        records.CoordinatorState,
        records.NamedGraph,
        records.InsertionDone,
        records.BucketProgress,
        records.GroupProgress,
        records.ProgressPart,
    )
}
Wire: TypeAlias = (
    records.Tuples
    | records.ShardBatch
    | records.DispatcherState
    | records.ShardInsertion
    | records.ShardRemoval
    | records.ShardLoad
    | records.DictionaryEntry
    | records.DictionaryState
    | records.StreamDeclaration
    | records.StreamDrop
    | records.StreamPredicates
    | records.StreamEnd
    | records.QueryRegistration
    | records.QueryStop
    | records.Heartbeat
    | records.Placement
    | records.CoordinatorState
    | records.NamedGraph
    | records.InsertionDone
    | records.BucketProgress
    | records.GroupProgress
    | records.ProgressPart
)


class WireError(DataError):
    """The given bytes are not a complete record of a known schema."""


def encode(record: Wire) -> bytes:
    """Return a record as bytes."""
    cls: type = type(record)
    schema = library().by_name[cls.__name__]
    columns = schema.columns
    body: dict[str, Any] = {name: _plain(getattr(record, name)) for name in _field_names(cls) if name not in columns}
    for name, dtype in columns.items():
        body[name] = np.asarray(getattr(record, name), dtype).tobytes()
    out = io.BytesIO()
    out.write(_MARKER + schema.print)
    fastavro.schemaless_writer(out, schema.parsed, body)
    return out.getvalue()


@cache
def _field_names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def decode(data: bytes) -> Wire:
    """Return the record in encoded data. WireError if the data is not a record of a known schema."""
    schema = library().by_print.get(data[len(_MARKER) : _HEAD]) if data[: len(_MARKER)] == _MARKER else None
    if schema is None:
        raise WireError(f"{len(data)} bytes are not a record of a known schema (they start with {data[:_HEAD].hex()})")
    body = io.BytesIO(data)
    body.seek(_HEAD)
    try:
        found = fastavro.schemaless_reader(body, schema.parsed, None)
        assert isinstance(found, dict)
        columns = {name: np.frombuffer(found[name], dtype) for name, dtype in schema.columns.items()}
    except (EOFError, ValueError, IndexError, OverflowError, MemoryError, TypeError) as error:
        raise WireError(f"a damaged {schema.name}: {error!r}") from error
    if body.tell() != len(data):
        raise WireError(f"{len(data) - body.tell()} bytes after the end of a {schema.name}")
    made = _made(_CLASSES[schema.name], found | columns)
    _check_columns(made)
    return made


def _check_columns(record: Wire) -> None:
    """Raise WireError if the columns of a record have different lengths although they must have equal lengths.
    WireError also if `part` is not below `parts`. The readers of decoded records do not repeat these checks.
    """
    match record:
        case records.Tuples():
            events = {len(record.offsets), len(record.times), len(record.counts)}
            tuples = {len(record.subjects), len(record.predicates), len(record.objects), int(record.counts.sum())}
            flags = len(record.removed) in (0, len(record.subjects))
            good = len(events) == 1 and len(tuples) == 1 and flags
        case records.ShardBatch():
            columns = (record.times, record.subjects, record.predicates, record.objects)
            good = all(len(column) == len(record.positions) for column in columns) and 0 <= record.part < record.parts
            good &= len(record.removed) in (0, len(record.positions))
        case _:
            good = True
    if not good:
        raise WireError(f"a damaged {type(record).__name__}: columns of unequal lengths")


def _plain(value: Any) -> Any:
    """Return the value of a field in the type that fastavro expects."""
    return list(value) if isinstance(value, tuple) else value


def _made(cls: type, found: dict[str, Any]) -> Wire:
    """Create a record from fields that fastavro has read."""
    made: Wire = cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in found.items()})
    return made
