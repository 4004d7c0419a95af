"""Result records in Avro: a registry without HTTP, and a reader that knows nothing of Penstock."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro

from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

XSD = "http://www.w3.org/2001/XMLSchema#"


class RegistryInMemory:
    """What `SchemaRegistration` needs of a registry. `error`: an error that all requests raise."""

    name = "the registry in memory"

    def __init__(self) -> None:
        self.schemas: dict[int, str] = {}
        self.subjects: dict[str, list[int]] = {}
        self.error: Exception | None = None

    def register(self, subject: str, schema: str) -> int:
        if self.error is not None:
            raise self.error
        number = next((n for n, known in self.schemas.items() if known == schema), len(self.schemas) + 7)
        self.schemas[number] = schema
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def schema(self, number: int) -> Any:
        if number not in self.schemas:
            raise DataError(f"no schema {number}")
        return json.loads(self.schemas[number])

    def close(self) -> None:
        pass


def at_once(work: Callable[[], None]) -> None:
    """Run the work of a `SchemaRegistration` in its caller."""
    work()


def row_of(value: bytes, schema_of: Callable[[int], Any]) -> dict[str, Any]:
    """Return the record in Confluent's wire format, as fastavro decodes it."""
    assert value[0] == 0
    body = io.BytesIO(value[5:])
    found = fastavro.schemaless_reader(body, fastavro.parse_schema(schema_of(int.from_bytes(value[1:5], "big"))), None)
    assert body.read() == b""
    assert isinstance(found, dict)
    found["_time"] = round(found["_time"].timestamp() * 1_000)
    return found


def plain(term: Mapping[str, str], kind: str = "string") -> object:
    """Return the value of a field for a term of SPARQL Results JSON."""
    if kind == "long":
        return int(term["value"])
    if kind == "double":
        return float(term["value"])
    if kind == "boolean":
        return term["value"] in ("true", "1")
    return ("_:" if term["type"] == "bnode" else "") + term["value"]
