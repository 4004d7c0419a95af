"""Consumers of `added` and `removed`: what they hold after each record must be the answer of a query without `changes`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any
from zlib import crc32

from penstock.engine.answers.avro.row_schema import row_schema
from penstock.engine.answers.evaluation_records import RECORD_FORMATS
from penstock.errors import DataError
from penstock.query.ir import ContinuousQuery, RelationToStream
from penstock.query.parser import parse
from penstock.query.resolve import as_query


def with_changes(text: str) -> bool:
    """Whether a query is registered with `changes`: every second one for which that is possible."""
    query = parse(text, None, accepted=True)
    assert isinstance(query, ContinuousQuery)
    possible = not query.publishes and query.r2s is RelationToStream.RSTREAM and not query.report_nonempty
    return possible and crc32(text.encode()) % 2 == 0


def result_format(text: str, *, avro: bool = False) -> str:
    """The format of the records of a query: each format is that of as many texts. `avro`: whether there is a registry;
    then also records in Avro, if that is possible.
    """
    formats = [each for each in RECORD_FORMATS if each != "avro" or (avro and _has_rows(text))]
    return formats[crc32(b"format " + text.encode()) % len(formats)]


def _has_rows(text: str) -> bool:
    """Whether the records of a query can be in Avro."""
    if with_changes(text):
        return False
    try:
        row_schema(as_query(parse(text, None, accepted=True)))
    except DataError:
        return False
    return True


class HeldRows:
    """What a consumer of one query holds: rows, triples, or a boolean as the presence of a row without variables."""

    def __init__(self) -> None:
        self._rows: Counter[str] | None = None  # None: no record with the complete answer came yet

    def read(self, record: bytes) -> dict[str, Any]:
        """Apply a record in JSON. Returns the line that a query without `changes` would have written."""
        return self.apply(json.loads(record))

    def apply(self, line: dict[str, Any]) -> dict[str, Any]:
        """Apply the line of an evaluation. Returns the line that a query without `changes` would have written."""
        if "added" not in line:
            if "error" not in line:
                self._rows = _rows(line)
            return line
        added, removed = line.pop("added"), line.pop("removed")
        assert added.keys() == removed.keys()
        assert self._rows is not None, f"{line}: changes of rows that no record has had"
        gone, held = _rows(removed), self._rows + _rows(added)
        assert gone <= held, f"{line}: rows removed that are not held"
        self._rows = held - gone
        rows = list(self._rows.elements())
        if "results" in added:
            return line | {"head": added["head"], "results": {"bindings": [json.loads(row) for row in rows]}}
        assert len(set(rows)) == len(rows), f"{line}: a triple or a boolean added twice"
        if "boolean" in added:
            return line | {"head": {}, "boolean": bool(rows)}
        return line | {"graph": "".join(sorted(rows))}


def _rows(answer: dict[str, Any]) -> Counter[str]:
    if "boolean" in answer:
        return Counter(["true"] if answer["boolean"] else [])
    if "graph" in answer:
        return Counter(f"{line}\n" for line in answer["graph"].split("\n") if line)
    return Counter(json.dumps(row, sort_keys=True) for row in answer["results"]["bindings"])
