"""The members of query sets in files: CSV, JSON, or Arrow."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import typer

from penstock.errors import DataError
from penstock.http.member_rows import rows_of
from penstock.json_text import parse_json
from penstock.query.parser import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.engine import Engine, QuerySet


class Report(StrEnum):
    """Which members of a query set report at an instant (see `Engine.register_set`)."""

    every = "every"
    nonempty = "nonempty"
    change = "change"


class MemberTables:
    """The options of `penstock run` for query sets. NAME is the name of a query set.

    `parameters`: arguments NAME=FILE of the option `--parameters`. FILE contains the members of the query set. `keys`:
    arguments NAME=COLUMN,… of the option `--key`. The columns identify a member.
    """

    def __init__(self, parameters: Sequence[str], keys: Sequence[str], report: Report) -> None:
        self._files = _by_name("--parameters", parameters)
        self._keys = _by_name("--key", keys)
        self._report = report
        self._registered: set[str] = set()

    def register(self, engine: Engine, text: str, base: str | None) -> QuerySet:
        """Register a query set with the members of its file. DataError if the query set has no file, or if no row of
        the file is a member.
        """
        statement = parse(text, base, limits=engine.limits)
        name = getattr(statement, "name", None) or ""
        if name not in self._files:
            raise DataError(f"{name} is a query set: give its members as --parameters {name}=FILE")
        key = self._keys[name].split(",") if name in self._keys else None
        made = engine.register_set(text, report=self._report.value, key=key, base=base)
        self._registered.add(name)
        report = made.add(read_members(self._files[name], made.columns))
        if report.rejected:
            reason = engine.dead_letters()[0].reason
            if not len(made):
                raise DataError(f"{self._files[name]}: no row is a member: {reason}")
            print(
                f"{self._files[name]}: {report.rejected} rows rejected, the first one because: {reason}",
                file=sys.stderr,
            )
        return made

    def check_used(self) -> None:
        """Raise BadParameter if the name in an option is not the name of a query set."""
        for option, named in (("--parameters", self._files), ("--key", self._keys)):
            for name in named:
                if name not in self._registered:
                    raise typer.BadParameter(f"{option} {name}=…: no file has a query set of this name")


def read_members(path: str, names: Sequence[str]) -> Any:
    """Return the rows of a file, in a form that `QuerySet.add` takes. The ending of the file name determines the
    format: .csv (with a header), .json (an array of objects, or an object on each line), .jsonl, .ndjson, .arrow or
    .feather (an Arrow file or stream). `names`: the columns to read. DataError if the file is invalid.
    """
    ending = Path(path).suffix.lower()
    data = Path(path).read_bytes()
    try:
        if ending in (".arrow", ".arrows", ".feather"):
            is_file = data.startswith(b"ARROW1")
            reader = pa.ipc.open_file(data) if is_file else pa.ipc.open_stream(data)
            return reader.read_all()
        if ending == ".json" and data.lstrip().startswith(b"["):
            return parse_json(data, path)
        if ending in (".json", ".jsonl", ".ndjson"):
            return rows_of(data, "application/x-ndjson", names)
        if ending == ".csv":
            return rows_of(data, "text/csv", names)
    except (pa.ArrowException, DataError) as error:
        raise DataError(f"{path}: {error}") from error
    raise DataError(f"{path}: members are in a file .csv, .json, .jsonl or .arrow")


def shown(member: Any) -> str:
    """Return the key of a member as text."""
    if isinstance(member, tuple):
        return ", ".join(map(shown, member))
    if isinstance(member, dict):
        return str(member["value"])
    return member if isinstance(member, str) else json.dumps(member)


def _by_name(option: str, given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, _, value = each.partition("=")
        if not name or not value:
            raise typer.BadParameter(f"{option} expects NAME=VALUE, not {each!r}")
        found[name] = value
    return found
