"""The W3C suites through the public API: an adaptor from `penstock.Engine` to the shared runner's interface."""

from __future__ import annotations

import functools
from typing import Any

import rdflib

import penstock
from support import shared

FORMATS = {"ttl": "turtle", "n3": "turtle", "rdf": "xml", "nt": "nt", "nq": "nquads", "trig": "trig"}


@functools.cache
def tests() -> tuple[Any, ...]:
    """Return every test of the suite, in the order of its manifests."""
    root = shared.need("suites/w3c")
    return tuple(shared.module("suites/w3c_runner.py").Suite(str(root)).tests())


def as_result(answer: Any) -> tuple[Any, ...]:
    """Turn an answer of the API (Solutions | bool | rdflib.Graph) into the runner's form."""
    term = shared.module("suites/w3c_runner.py").from_rdflib
    if isinstance(answer, bool):
        return ("boolean", answer)
    if isinstance(answer, rdflib.Graph):
        return ("graph", [tuple(term(x) for x in triple) for triple in answer])
    return ("bindings", list(answer.variables), [{name: term(value) for name, value in row.items()} for row in answer])


class PenstockAdaptor:
    """`parse` and `evaluate` as the shared runner calls them. Each evaluation has a new engine."""

    def parse(self, text: str, base: str) -> None:
        penstock.parse(text, base=base, any_function=True)  # only the grammar, as with the other engines

    def evaluate(self, task: Any) -> tuple[Any, ...]:
        with penstock.Engine() as engine:
            for iri, path in task.default:
                engine.load(path, graph=None, format=FORMATS[path.rsplit(".", 1)[1]], base=iri)
            for iri, path in (*task.named, *task.from_available):
                engine.load(path, graph=iri, format=FORMATS[path.rsplit(".", 1)[1]], base=iri)
            return as_result(engine.query(task.query, base=task.base))


def adaptor(name: str) -> Any:
    """Return the adaptor of `penstock`, or of `pyoxigraph` or `rdflib` (which test the harness itself)."""
    if name == "penstock":
        return PenstockAdaptor()
    return shared.module("suites/w3c_runner.py").get_engine(name)
