"""Event times of mapped messages. An event time comes from a value of the record, from a header, or from the timestamp
of the message.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import DataError
from penstock.mapping.json_path import is_single, parse_path, single_value
from penstock.mapping.message_records import RealNumber
from penstock.mapping.program import Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.mapping.message_records import SourceMessage

UNITS: Final = ("iso8601", "s", "ms", "us")
_SCALE: Final = {"s": Decimal(1000), "ms": Decimal(1), "us": Decimal("0.001")}
_NUMBER: Final = re.compile(r"-?\d{1,20}(?:\.\d{1,12})?(?:[eE][+-]?\d{1,2})?")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,12})?)?(?:[Zz]|[+-]\d\d:?\d\d)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EventTimes:
    """The rule for the event times of a stream's messages.

    `rule`: None, or an object. The object has `unit`, and either `path` (JSONPath, or a column of CSV) or `header`. The
    unit is "iso8601", or "s", "ms" or "us" since the epoch. An ISO 8601 time without an offset is UTC. Times are
    truncated to ms. If `rule` is None, the time of an event is the timestamp of its message.

    `reference`: the reference to the event time in the message, and the unit. None if the timestamps of the messages
    are used.
    """

    def __init__(self, rule: dict[str, Any] | None, *, rows: bool) -> None:
        self._find: Callable[[Any, SourceMessage], Any] | None = None
        self.reference: tuple[Reference, str] | None = None
        if rule is None:
            return
        if not isinstance(rule, dict) or not set(rule) <= {"path", "header", "unit"}:
            raise DataError("mapping: `time` is an object with `path` or `header`, and `unit`")
        if ("path" in rule) == ("header" in rule):
            raise DataError("mapping: `time` needs either `path` or `header`")
        self._unit = rule.get("unit", "iso8601")
        if self._unit not in UNITS:
            raise DataError(f"mapping: the `unit` of `time` is one of {', '.join(UNITS)}, not {self._unit!r}")
        name = rule["path"] if "path" in rule else rule["header"]
        if not isinstance(name, str) or not name:
            raise DataError(f"mapping: `path` and `header` of `time` are texts, not {name!r}")
        self._place = f"time at {name!r}" if "path" in rule else f"time in header {name!r}"
        self._find = _header(name.lower()) if "header" in rule else _column(name) if rows else _path(name)
        self.reference = _reference(name, header="header" in rule, rows=rows), self._unit

    def of(self, record: Any, message: SourceMessage) -> int:
        """Return the time of an event in ms. DataError if the event has no time, or if the time does not have the
        declared form.
        """
        if self._find is None:
            if message.timestamp_ms is None:
                raise DataError("no timestamp: the call gives none, and the mapping has no `time`")
            return message.timestamp_ms
        value = self._find(record, message)
        if type(value) is int and self._unit == "ms":
            return value
        if value is None:
            raise DataError(f"{self._place}: the message has no value there")
        return self._converted(value)

    def _converted(self, value: Any) -> int:
        if self._unit == "iso8601":
            if type(value) is str and _ISO.fullmatch(value):
                try:
                    found = datetime.fromisoformat(value.upper())
                except ValueError as error:
                    raise DataError(f"{self._place}: {value!r}: {error}") from error
                since = (found if found.tzinfo else found.replace(tzinfo=UTC)) - _EPOCH
                return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
            raise DataError(f"{self._place}: {_shown(value)} is not an ISO 8601 date and time")
        text = str(value) if type(value) in (int, str, RealNumber) else ""
        if not _NUMBER.fullmatch(text):
            raise DataError(f"{self._place}: {_shown(value)} is not a number of {self._unit}")
        try:
            return int((Decimal(text) * _SCALE[self._unit]).to_integral_value("ROUND_FLOOR"))
        except InvalidOperation as error:
            raise DataError(f"{self._place}: {_shown(value)} is out of range") from error


def _shown(value: Any) -> str:
    text = repr(str(value) if type(value) is RealNumber else value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _reference(name: str, *, header: bool, rows: bool) -> Reference:
    if header or rows:
        return Reference("header" if header else "column", name, (), name)
    return Reference("path", name, parse_path(name))


def _header(name: str) -> Callable[[Any, SourceMessage], Any]:
    def find(_: Any, message: SourceMessage) -> Any:
        found = message.headers.get(name)
        return None if found is None else found.decode("utf-8", "replace").strip()

    return find


def _column(name: str) -> Callable[[Any, SourceMessage], Any]:
    return lambda record, _: record.get(name)


def _path(text: str) -> Callable[[Any, SourceMessage], Any]:
    path = parse_path(text)
    if not is_single(path):
        raise DataError(f"mapping: the path {text!r} of `time` can have several values")
    find = single_value(path)
    return lambda record, _: find(record)
