"""Result records in Avro: what they have of an evaluation, and what they must have."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from simulation.reference import content
from simulation.sets import member_name
from support.avro_rows import plain, row_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.log import Message
    from support.avro_rows import RegistryInMemory

Key = tuple[str, int]
_BLANK = re.compile("^_:.*")


class AvroRows:
    """Collects the rows of evaluations. `kinds`: the types of the fields of each evaluation."""

    def __init__(self, registry: RegistryInMemory) -> None:
        self._registry = registry
        self._rows: dict[Key, list[dict[str, Any]]] = {}
        self.kinds: dict[Key, Mapping[str, str]] = {}

    def read(self, message: Message) -> Key | None:
        """Add the row of a record. Returns the evaluation if the row is its first one."""
        assert message.value is not None
        row = row_of(message.value, self._registry.schema)
        key = member_name(_named(row)), row["_time"]
        first = not row.get("_row")
        if first:
            schema = self._registry.schema(int.from_bytes(message.value[1:5], "big"))
            self.kinds[key] = {each["name"]: each["type"][1] for each in schema["fields"] if "default" in each}
            self._rows[key] = []
        self._rows.setdefault(key, []).append(row)
        return key if first else None

    def contents(self) -> dict[Key, dict[str, Any]]:
        """What the evaluations have, in the form of `as_rows`."""
        return {key: self._content(rows, self.kinds.get(key, {})) for key, rows in self._rows.items()}

    def _content(self, rows: list[dict[str, Any]], kinds: Mapping[str, str]) -> dict[str, Any]:
        line = _named(rows[0]) | {"time": rows[0]["_time"]}
        if rows[0]["_error"] is not None:
            return content(line | {"error": rows[0]["_error"]}) if len(rows) == 1 else {"broken": rows}
        if "_rows" not in rows[0]:
            (row,) = rows
            return content(line | {name: row[name] for name in kinds if name != "_error"})
        if [row["_row"] for row in rows] != list(range(max(rows[0]["_rows"], 1))):
            return {"broken": rows}
        found = [{name: row[name] for name in kinds if name != "_error"} for row in rows if row["_rows"]]
        return line | {"rows": _sorted(found)}


def _named(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[f"_{name}"] for name in ("query", "member") if f"_{name}" in row}


def as_rows(expected: dict[str, Any], kinds: Mapping[str, str]) -> dict[str, Any]:
    """What records in Avro have of an evaluation. `expected`: the evaluation as of `content`."""
    found = {name: value for name, value in expected.items() if name not in ("windows", "head", "results")}
    if "results" in expected:
        terms = map(json.loads, expected["results"])
        found["rows"] = _sorted(
            [
                {
                    name: plain(row[name], kind) if name in row else None
                    for name, kind in kinds.items()
                    if name != "_error"
                }
                for row in terms
            ]
        )
    return found


def _sorted(rows: list[dict[str, Any]]) -> list[str]:
    """The rows, without the labels of blank nodes."""
    same = [{n: _BLANK.sub("_:b", v) if isinstance(v, str) else v for n, v in row.items()} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in same)
