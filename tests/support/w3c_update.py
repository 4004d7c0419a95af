"""The W3C suite for SPARQL 1.1 Update through the public API: an adaptor to the shared runner's interface."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import penstock
from support import shared, w3c

EVERYTHING = "SELECT * { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }"


@functools.cache
def suite() -> Any:
    return shared.module("suites/w3c_update_runner.py").Suite(str(shared.need("suites/w3c-update")))


@functools.cache
def tests() -> tuple[Any, ...]:
    """Return every test of the suite, in the order of its manifests."""
    return tuple(suite().tests())


def state_after(task: Any) -> dict[str | None, list[Any]]:
    """Execute the update of a test on a new engine. Returns the triples of each graph (None: the default graph)."""
    key = shared.module("suites/w3c_update_runner.py").key
    with penstock.Engine() as engine:
        for graph, base, path in ((None, *pair) for pair in task.default):
            engine.load(path, graph=graph, format=w3c.FORMATS[path.rsplit(".", 1)[1]], base=base)
        for graph, base, path in task.named:
            engine.load(path, graph=graph, format=w3c.FORMATS[path.rsplit(".", 1)[1]], base=base)
        engine.update(task.request, base=task.base)
        found: dict[str | None, list[Any]] = defaultdict(list)
        for row in engine.query(EVERYTHING):  # type: ignore[union-attr]
            graph = str(row["g"]) if "g" in row else None  # type: ignore[index, call-overload]
            found[graph].append(tuple(key(row[name]) for name in "spo"))  # type: ignore[index, call-overload]
        return found
