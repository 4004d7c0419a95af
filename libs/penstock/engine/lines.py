"""An evaluation as one line of JSON: what `--format jsonl` prints and the cluster's result topics carry (API.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.engine.answers import Solutions
from penstock.engine.formats import json_bindings

if TYPE_CHECKING:
    from penstock.engine.blocks import Evaluation


def json_line(evaluation: Evaluation, query: str | None = None) -> str:
    """Return the line; `query` in place of the evaluation's own name. `error` says why an evaluation has no answer."""
    line: dict[str, Any] = {
        "query": query or evaluation.query,
        "time": evaluation.time,
        "windows": {iri: list(bounds) for iri, bounds in evaluation.windows.items()},
        "snapshot": evaluation.snapshot,
        "attempt": evaluation.attempt,
    }
    if evaluation.error is not None:
        line["error"] = str(evaluation.error)
        return json.dumps(line, ensure_ascii=False)
    answer = evaluation.raw
    if isinstance(answer, bool):
        line |= {"head": {}, "boolean": answer}
    elif isinstance(answer, Solutions):
        line["head"] = {"vars": list(answer.variables)}
        line["results"] = {"bindings": json_bindings(answer.variables, answer.tuples())}
    else:
        line["graph"] = "".join(sorted(answer.to_ntriples().splitlines(keepends=True)))
    return json.dumps(line, ensure_ascii=False)
