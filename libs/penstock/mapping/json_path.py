"""A subset of JSONPath (RFC 9535): names, indexes and wildcards, but no search and no filters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable

Path: TypeAlias = tuple[str | int | None, ...]
"""The steps of a path. A step is the name of a member, the index of an element, or None for a wildcard."""

MAX_STEPS = 128
_NAME = re.compile(r"[^\W\d][\w-]*")
_BARE_NAME = re.compile(r"[^.\[\]*'\"$@?(){}\s][^.\[\]*'\"(){}]*")
_INDEX = re.compile(r"-?(?:0|[1-9]\d{0,8})")
_QUOTED = re.compile(r"""'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)\"""", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_PLAIN = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def parse_path(text: str) -> Path:
    """Return the steps of a path. For older mappings, the `$` at the beginning is optional. DataError if the path is
    invalid or has search (`..`), filters or slices.
    """
    steps: list[str | int | None] = []
    at = 1 if text.startswith("$") else 0
    if at == 0:
        name = _BARE_NAME.match(text)
        if name is None:
            raise _invalid(text, 0)
        steps.append(name.group().rstrip())
        at = name.end()
    while at < len(text):
        step, at = _step(text, at)
        steps.append(step)
        if len(steps) > MAX_STEPS:
            raise DataError(f"the path {text[:60]!r}… has more than {MAX_STEPS} steps")
    return tuple(steps)


def _step(text: str, at: int) -> tuple[str | int | None, int]:
    if text.startswith("..", at):
        raise DataError(f"the path {text!r} has '..' (search), which is not supported")
    if text[at] == ".":
        if text.startswith(".*", at):
            return None, at + 2
        name = _NAME.match(text, at + 1)
        if name is None:
            raise _invalid(text, at + 1)
        return name.group(), name.end()
    if text[at] != "[":
        raise _invalid(text, at)
    return _bracket(text, at + 1)


def _bracket(text: str, at: int) -> tuple[str | int | None, int]:
    if text.startswith("*]", at):
        return None, at + 2
    if text.startswith("?", at):
        raise DataError(f"the path {text!r} has a filter, which is not supported")
    if quoted := _QUOTED.match(text, at):
        end, step = quoted.end(), _unescaped(quoted.group(1) if quoted.group(2) is None else quoted.group(2))
        if text.startswith("]", end):
            return step, end + 1
        raise _invalid(text, end)
    index = _INDEX.match(text, at)
    if index is None or not text.startswith("]", index.end()):
        raise _invalid(text, at if index is None else index.end())
    return int(index.group()), index.end() + 1


def _unescaped(text: str) -> str:
    def one(found: re.Match[str]) -> str:
        code = found.group(1)
        return chr(int(code[1:], 16)) if len(code) > 1 else _PLAIN.get(code, code)

    return _ESCAPE.sub(one, text) if "\\" in text else text


def _invalid(text: str, at: int) -> DataError:
    found = repr(text[at]) if at < len(text) else "the end"
    return DataError(f"the path {text!r} is not JSONPath: {found} at character {at + 1}")


def is_single(path: Path) -> bool:
    """Return whether a path has at most one value."""
    return None not in path


def single_value(path: Path) -> Callable[[Any], Any]:
    """Return a function that finds the value at a path in a JSON value. The path has no wildcards. The function returns
    None if there is no value at the path.
    """
    if len(path) == 1 and isinstance(path[0], str):
        name = path[0]
        return lambda value: value.get(name) if type(value) is dict else None

    def find(value: Any) -> Any:
        for step in path:
            kind = type(value)
            if kind is dict and type(step) is str:
                value = value.get(step)
            elif kind is list and type(step) is int and -len(value) <= step < len(value):
                value = value[step]
            else:
                return None
        return value

    return find


def all_values(path: Path, most: int) -> Callable[[Any], list[Any]]:
    """Return a function that finds all values at a path in a JSON value. The function raises DataError for more than
    `most` values.
    """

    def find(value: Any) -> list[Any]:
        values = [value]
        for step in path:
            if step is None:
                values = [each for v in values for each in _children(v)]
            elif type(step) is str:
                values = [v[step] for v in values if type(v) is dict and step in v]
            else:
                values = [v[step] for v in values if type(v) is list and -len(v) <= step < len(v)]  # type: ignore[operator,index]
            if len(values) > most:
                raise DataError(f"more than {most} values (max_values)")
        return values

    return find


def _children(value: Any) -> list[Any]:
    if type(value) is list:
        return value
    return list(value.values()) if type(value) is dict else []
