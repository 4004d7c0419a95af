"""An evaluation as a line of JSON: the format of `--format jsonl` and of the cluster's results topics (kafka.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.engine.answers.answer_values import Solutions
from penstock.engine.answers.result_formats import in_order, json_bindings

if TYPE_CHECKING:
    from penstock.engine.answers.result_blocks import Evaluation

_LINE_ENDS = (("\u0085", r"\u0085"), ("\u2028", r"\u2028"), ("\u2029", r"\u2029"))


def json_line(evaluation: Evaluation, query: str | None = None, error: str | None = None) -> str:
    """Return an evaluation as one line of JSON, without a line end. `query` overrides the evaluation's query name.
    `error`: an error to write in place of the answer; None: the evaluation's own error, if it has one.
    """
    line: dict[str, Any] = {
        "query": query or evaluation.query,
        "time": evaluation.time,
        "windows": {iri: list(bounds) for iri, bounds in evaluation.windows.items()},
        "snapshot": evaluation.snapshot,
        "attempt": evaluation.attempt,
    }
    if error is not None or evaluation.error is not None:
        line["error"] = error or str(evaluation.error)
        return _one_line(json.dumps(line, ensure_ascii=False))
    answer = evaluation.raw
    if isinstance(answer, bool):
        line |= {"head": {}, "boolean": answer}
    elif isinstance(answer, Solutions):
        line["head"] = {"vars": list(answer.variables)}
        line["results"] = {"bindings": json_bindings(answer.variables, answer.tuples())}
    else:
        line["graph"] = in_order(answer.to_ntriples())
    return _one_line(json.dumps(line, ensure_ascii=False))


def _one_line(text: str) -> str:
    """Escape U+0085, U+2028 and U+2029. JSON allows them in strings, but some readers, such as Python's
    `str.splitlines`, end a line there.
    """
    if text.isascii():
        return text  # the common case
    for character, escape in _LINE_ENDS:
        text = text.replace(character, escape)
    return text
