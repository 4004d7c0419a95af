"""Two independent engines as references for one evaluation: rdflib and pyoxigraph."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import rdflib
from rdflib.plugins.sparql import prepareQuery

from support.answers import Answer, Rows, from_api
from support.terms import from_rdflib, to_rdflib

if TYPE_CHECKING:
    from support.evaluator import Data


def by_pyoxigraph(text: str, data: Data, *, ordered: bool = False) -> Answer:
    store = ox.Store()
    store.extend(ox.Quad(s, p, o) for s, p, o in data.default.triples)
    for name, content in data.graphs.items():
        graph = ox.NamedNode(name)
        store.add_graph(graph)
        store.extend(ox.Quad(s, p, o, graph) for s, p, o in content.triples)
    result = store.query(text)
    if isinstance(result, ox.QueryBoolean):
        return bool(result)
    if isinstance(result, ox.QuerySolutions):
        names = [v.value for v in result.variables]
        return Rows(tuple(names), tuple(tuple(row[n] for n in names) for row in result), ordered)
    return frozenset((t.subject, t.predicate, t.object) for t in result)


@functools.lru_cache(maxsize=4096)
def _prepared(text: str) -> Any:
    return prepareQuery(text)


def by_rdflib(text: str, data: Data, *, ordered: bool = False) -> Answer:
    """Answer by rdflib. It has a known fault: GROUP BY over no solutions gives an unbound row (docs/semantics.md §7,
    trap 17).
    """
    dataset = rdflib.Dataset(default_union=False)
    for s, p, o in data.default.triples:
        dataset.default_graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
    for name, content in data.graphs.items():
        graph = dataset.graph(rdflib.URIRef(name))
        for s, p, o in content.triples:
            graph.add((to_rdflib(s), to_rdflib(p), to_rdflib(o)))
    result = dataset.query(_prepared(text))
    if result.type == "ASK":
        return bool(result.askAnswer)
    if result.type == "SELECT":
        names = tuple(str(v) for v in result.vars)
        rows = ({str(k): v for k, v in row.items() if v is not None} for row in result.bindings)
        return Rows(names, tuple(tuple(from_rdflib(r[n]) if n in r else None for n in names) for r in rows), ordered)
    return from_api(result.graph)
