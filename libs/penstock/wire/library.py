"""The schemas of wire records. Each schema is a file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

FOLDER = Path(__file__).parent / "schemas"
_COLUMNS: dict[str, np.dtype[Any]] = {
    "u64": np.dtype("<u8"),
    "i64": np.dtype("<i8"),
    "u32": np.dtype("<u4"),
    "u8": np.dtype("u1"),
}


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a kind of record. `print`: the CRC-64-AVRO fingerprint of the schema. `columns`: the fields that
    are columns, each with its numeric type.
    """

    name: str
    print: bytes
    parsed: dict[str, Any]
    columns: dict[str, np.dtype[Any]]

    @classmethod
    def of(cls, source: dict[str, Any]) -> Schema:
        """Create a schema from the JSON object of its file."""
        print_ = bytes.fromhex(fingerprint(to_parsing_canonical_form(source), "CRC-64-AVRO"))
        columns: dict[str, np.dtype[Any]] = {
            f["name"]: _COLUMNS[f["column"]] for f in source["fields"] if "column" in f
        }
        parsed = parse_schema(source, named_schemas={})
        assert isinstance(parsed, dict)
        return cls(source["name"], print_, parsed, columns)


class Library:
    """An index of the schemas by the name of the record, and by the fingerprint."""

    def __init__(self, folder: Path) -> None:
        self.by_name = {schema.name: schema for schema in map(_read, sorted(folder.glob("*.avsc")))}
        self.by_print = {schema.print: schema for schema in self.by_name.values()}


@cache
def library() -> Library:
    """Return the schemas of this package."""
    return Library(FOLDER)


def _read(path: Path) -> Schema:
    return Schema.of(json.loads(path.read_text(encoding="utf-8")))
