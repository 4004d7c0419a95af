"""Reads the records of a results topic in any format (docs/kafka.md). The evaluations become JSON objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from penstock.engine.answers.evaluation_records import FORMAT_HEADER, SHARED, record_format, stream_of
from penstock.engine.answers.json_lines import one_line
from penstock.rdf.terms import RDF_LANG_STRING, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.engine.answers.evaluation_records import RecordFormat

_HEAD = ("query", "member", "time", "windows", "snapshot", "attempt")  # members of a line, except the answer
_CHANGES = ("added", "removed")


def format_of(headers: Sequence[tuple[str, bytes]]) -> RecordFormat:
    """Return the format of a results record. DataError if the format is unknown."""
    return record_format(
        next((value.decode(errors="replace") for name, value in headers if name == FORMAT_HEADER), None)
    )


def lines_of(
    value: bytes, headers: Sequence[tuple[str, bytes]], chosen: Callable[[str], bool] = lambda _: True
) -> Iterator[Mapping[str, Any]]:
    """Yield the evaluations in a results record. Each evaluation has the form of the format `json`. The evaluations of
    a query are yielded only if `chosen` returns True for the name of the query. The call yields nothing for a record in
    Avro, because such a record has no RDF terms.
    """
    record_format = format_of(headers)
    if record_format == "avro":
        return
    if record_format == "arrow":
        yield from _rows(_batch(value), chosen)
        return
    document: dict[str, Any] = json.loads(value)
    if record_format == "json":
        if chosen(document.get("query", "")):
            yield document
        return
    for evaluation in document.pop("evaluations"):
        if chosen(evaluation["query"]):
            yield {"query": evaluation["query"], **document, **evaluation}


def _batch(value: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(value) as reader:
        return reader.read_next_batch()


def _rows(batch: pa.RecordBatch, chosen: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    shared = json.loads(batch.schema.metadata[SHARED])
    places = [i for i, name in enumerate(batch.column("query").to_pylist()) if chosen(name)]
    if len(places) < batch.num_rows:
        batch = batch.take(pa.array(places, pa.int64()))
    names = batch.schema.names
    types = {name: batch.schema.field(name).type for name in names[2:]}
    variables = {name: [f.name for f in kind.value_type] for name, kind in types.items() if pa.types.is_list(kind)}
    for row in batch.to_pylist():
        line = {"query": row["query"], **shared}
        for name in names[2:]:
            if (value := row[name]) is not None:
                document = _document(value, variables.get(name, ()))
                line |= {name: document} if name in _CHANGES else document
        yield line


def _document(value: Any, variables: Sequence[str]) -> dict[str, Any]:
    """Return an answer, or the added or removed part of an answer, as members of a JSON object."""
    if isinstance(value, bool):
        return {"head": {}, "boolean": value}
    if isinstance(value, str):
        return {"graph": value}
    return {"head": {"vars": list(variables)}, "results": {"bindings": [_solution(solution) for solution in value]}}


def _solution(row: dict[str, dict[str, str | None] | None]) -> dict[str, dict[str, str]]:
    return {name: term_json(term) for name, term in row.items() if term is not None}


def term_json(term: dict[str, str | None]) -> dict[str, str]:
    """Return a term as a JSON object of SPARQL Results JSON."""
    found = {"type": term["type"], "value": term["value"]}
    if term["lang"]:
        found["xml:lang"] = term["lang"]
    elif term["datatype"] not in (None, XSD_STRING, RDF_LANG_STRING):
        found["datatype"] = term["datatype"]
    return found  # type: ignore[return-value]


def error_line(line: Mapping[str, Any], reason: str) -> bytes:
    """Return an evaluation's line, with an error in place of the answer. If the line already has an error, this earlier
    error remains.
    """
    head = {name: line[name] for name in _HEAD if name in line}
    return one_line(head | {"error": line.get("error", reason)}).encode()


class Half(NamedTuple):
    """One half of a results record with several evaluations."""

    key: bytes
    value: bytes


def halves(value: bytes, headers: Sequence[tuple[str, bytes]]) -> list[Half]:
    """Divide a results record into two records, each with half of the evaluations. Returns [] if the record has only
    one evaluation.
    """
    record_format = format_of(headers)
    if record_format in ("json", "avro"):
        return []
    if record_format == "arrow":
        batch = _batch(value)
        half = batch.num_rows // 2
        if not half:
            return []
        time = batch.column("time")[0].as_py()
        parts = (batch.slice(0, half), batch.slice(half))
        return [Half(_key(part.column("query")[0].as_py(), time), stream_of(part)) for part in parts]
    document = json.loads(value)
    evaluations = document.pop("evaluations")
    half = len(evaluations) // 2
    if not half:
        return []
    return [
        Half(
            _key(part[0]["query"], document["time"]),
            one_line(document | {"evaluations": part}).encode(),
        )
        for part in (evaluations[:half], evaluations[half:])
    ]


def _key(query: str, time: int) -> bytes:
    return f"{query}@{time}".encode()
