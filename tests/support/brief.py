"""Short forms for hand-written cases: `a p b` for a triple of `urn:x:` names, digits for integers, `"…"` for
strings.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from support.answers import Rows

if TYPE_CHECKING:
    from support.answers import Answer
    from support.systems import Reported
    from support.terms import Term

S, T = "urn:x:stream/s", "urn:x:stream/t"
PREFIX = "PREFIX : <urn:x:> "


def term(word: str) -> str:
    if word.lstrip("-").isdigit():
        return f'"{word}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return word if word[0] in '"<_' else f"<urn:x:{word}>"


def nt(*triples: str) -> str:
    """Return the N-Triples text of triples, each given as three words."""
    return "\n".join(" ".join(map(term, triple.split())) + " ." for triple in triples)


def short(value: Term | None) -> str | None:
    if isinstance(value, ox.BlankNode):
        return "_"
    return None if value is None else value.value.removeprefix("urn:x:")


def bag(answer: Answer) -> Counter[Any]:
    """Return an answer as a bag of tuples of short forms; with one variable, as a bag of short forms."""
    rows = answer.rows if isinstance(answer, Rows) else answer
    assert not isinstance(rows, bool)
    forms = (tuple(short(value) for value in row) for row in rows)
    return Counter(form[0] if len(form) == 1 else form for form in forms)


def words(evaluation: Reported) -> list[Any]:
    """Return the rows of an evaluation in short form, sorted, with duplicates."""
    return sorted(bag(evaluation.answer).elements(), key=str)


def timeline(evaluations: list[Reported]) -> dict[int, list[Any]]:
    """Return the rows of each instant in short form. Every instant must be later than the one before."""
    times = [e.time for e in evaluations]
    assert times == sorted(set(times)), times
    return {e.time: words(e) for e in evaluations}
