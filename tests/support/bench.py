"""An engine with a fixed clock, and short forms of triples, texts and answers, for tests of single behaviours."""

from __future__ import annotations

from typing import Any

import penstock

WALL = 1_000_000


class Bench:
    """Streams `urn:s`, `urn:t`, … and queries over `urn:` names, in a short form."""

    def __init__(self, **settings: Any) -> None:
        self.settings = {"clock": lambda: WALL, "seed": 1} | settings
        self.engine = penstock.Engine(**self.settings)

    def declare(self, *names: str, **settings: Any) -> None:
        for name in names:
            self.engine.declare_stream(f"urn:{name}", **settings)

    def push(self, stream: str, time: int, *triples: str) -> None:
        self.engine.push(f"urn:{stream}", nt(*triples), timestamp=time)

    def advance(self, stream: str | None, time: int, **more: Any) -> None:
        self.engine.advance(None if stream is None else f"urn:{stream}", time, **more)

    def register(self, body: str = "?s ?p ?o", *windows: str, **more: Any) -> penstock.Query:
        return self.engine.register(text(body, *windows, **more))

    def reopen(self) -> None:
        self.engine.close()
        self.engine = penstock.Engine(**self.settings)


def nt(*triples: str) -> str:
    return "".join("".join(f"<urn:{word}> " for word in triple.split()) + ".\n" for triple in triples)


def text(
    body: str = "?s ?p ?o",
    *windows: str,
    select: str = "SELECT *",
    header: str = "",
    after: str = "",
) -> str:
    clauses = " ".join(f"FROM STREAM <urn:{w.split()[0]}> [{w.partition(' ')[2]}]" for w in windows or ("s RANGE 1s",))
    return f"{header} PREFIX : <urn:> {select} {clauses} WHERE {{ {body} }} {after}"


def rows(answer: Any) -> list[Any]:
    """Return an answer's rows, sorted: tuples of terms without `urn:`, or the terms alone if there is one variable."""
    if isinstance(answer, bool):
        return [answer]
    if isinstance(answer, penstock.Solutions):
        found = [tuple(str(row.get(v, "-")).removeprefix("urn:") for v in answer.variables) for row in answer]
    else:
        found = [tuple(str(term).removeprefix("urn:") for term in triple) for triple in answer]
    return sorted(row[0] if len(row) == 1 else row for row in found)


def timeline(query: penstock.Query) -> dict[int, list[Any]]:
    """Poll a query, and return the rows of each instant."""
    return {e.time: rows(e.answer) for e in query.poll()}
