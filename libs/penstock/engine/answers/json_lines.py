"""Writes an evaluation as a line of JSON. The option `--format jsonl` and the cluster's results topics (kafka.md) use
this format.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.core import _native as native
from penstock.engine.answers.answer_values import Solutions

if TYPE_CHECKING:
    from penstock.engine.answers.result_blocks import Evaluation, Raw, Reading

_LINE_ENDS = (("\u0085", r"\u0085"), ("\u2028", r"\u2028"), ("\u2029", r"\u2029"))


def json_line(
    evaluation: Evaluation,
    query: str | None = None,
    error: str | None = None,
    *,
    whole: bool = False,
    complete: bool = False,
    member: Any = None,
) -> bytes:
    """Return an evaluation as one line of JSON in UTF-8, without a line end. `query` replaces the query name of the
    evaluation. If `error` is given, the line has this error in place of the answer. If `error` is not given and the
    evaluation has an error, the line has the error of the evaluation.

    If the query was registered with `changes`, the line has `added` and `removed` in place of the answer. With `whole`,
    the line also has the answer. With `complete`, the line has only the answer. `member` is the key of a query set's
    member, in a form that JSON can represent. For a single query, `member` is None.
    """
    named = {"query": query or evaluation.query, **({} if member is None else {"member": member})}
    head = named | _shared(evaluation.reading)
    if error is not None or evaluation.error is not None:
        head["error"] = error or str(evaluation.error)
        return one_line(head).encode()
    return _with_answer(evaluation, one_line(head)[:-1], whole=whole, complete=complete)


def shared_members(reading: Reading) -> str:
    """Return the JSON members that all evaluations of an execution share, without braces."""
    return one_line(_shared(reading))[1:-1]


def json_entry(evaluation: Evaluation, query: str, *, complete: bool) -> bytes:
    """Return the JSON object of an evaluation in a record of `json-batch`, without the members that all evaluations
    share. `complete`: see `json_line`.
    """
    return _with_answer(evaluation, one_line({"query": query})[:-1], whole=False, complete=complete)


def _shared(reading: Reading) -> dict[str, Any]:
    return {
        "time": reading.time,
        "windows": {iri: list(bounds) for iri, bounds in reading.windows.items()},
        "snapshot": reading.snapshot,
        "attempt": reading.attempt,
    }


def _with_answer(evaluation: Evaluation, opening: str, *, whole: bool, complete: bool) -> bytes:
    """Return a JSON object whose text begins with `opening`, followed by an answer."""
    if not evaluation.has_changes or complete:
        return _line(opening, evaluation.raw)
    added, removed = map(_document, evaluation.raw_changes)
    rest = _line("", evaluation.raw) if whole else b"}"
    return b'%b, "added": %b, "removed": %b%b' % (opening.encode(), added, removed, rest)


def _line(opening: str, answer: Raw) -> bytes:
    """Return a JSON object whose text begins with `opening`, followed by the JSON members of an answer."""
    if isinstance(answer, bool):
        return f'{opening}, "head": {{}}, "boolean": {"true" if answer else "false"}}}'.encode()
    if isinstance(answer, Solutions):
        return native.solutions_line(opening, *answer.written())
    return native.triples_line(opening, *answer.written())


def _document(answer: Raw) -> bytes:
    """Return an answer as a JSON object on one line, with escapes for U+0085, U+2028 and U+2029."""
    return b"{" + _line("", answer).removeprefix(b", ")


def one_line(members: dict[str, Any]) -> str:
    """Return a JSON object with escapes for U+0085, U+2028 and U+2029. JSON allows these characters in strings, but
    some readers, such as Python's `str.splitlines`, treat the characters as line ends.
    """
    text = json.dumps(members, ensure_ascii=False)
    if text.isascii():
        return text  # the common case
    for character, escape in _LINE_ENDS:
        text = text.replace(character, escape)
    return text
