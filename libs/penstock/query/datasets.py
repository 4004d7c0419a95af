"""Datasets: which parts of the dataset each pattern of a query reads (docs/semantics.md §4).

A *part* is a set of stored graphs, or a window. Each part has the source number of the physical plan: the stored graph
is source 0, and window clause i (counted from 0) is source i + 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.query.algebra.tree import Iri
from penstock.query.catalogue import STORED_GRAPH

if TYPE_CHECKING:
    from penstock.query.catalogue import Catalogue
    from penstock.query.ir import ContinuousQuery


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a dataset. `graphs`: the ids of the stored graphs in the part, or "named" for all stored named graphs;
    empty for a window. `name`: the id to which this part binds a graph variable.
    """

    source: int
    graphs: tuple[int, ...] | Literal["named"] = ()
    name: int | None = None

    def spec(self, *, named: bool) -> dict[str, Any]:
        """Return the part in plan format. `named`: whether a graph variable ranges over the part."""
        spec: dict[str, Any] = {"src": self.source}
        if self.source == 0:
            spec["graphs"] = self.graphs if self.graphs == "named" else list(self.graphs)
        if named and self.name is not None:
            spec["name"] = self.name
        return spec


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class QueryDataset:
    """The parts that a query reads: in the default graph, in `GRAPH <g>`, in `GRAPH ?g` and in `WINDOW <w>`."""

    default: Parts
    named: Parts  # for GRAPH ?g
    _addressed: dict[str, Parts]  # GRAPH <iri>
    _windows: dict[str, Parts]  # WINDOW <iri>
    _open: bool  # whether GRAPH <g> can name a stored graph that no clause lists
    _catalogue: Catalogue

    def graph(self, iri: str) -> Parts:
        """Return the parts that `GRAPH <iri>` reads. The result is empty if the dataset does not contain the graph."""
        if iri in self._addressed:
            return self._addressed[iri]
        if self._open:
            return (_stored(iri, self._catalogue),)
        return ()

    def lists(self, iri: str) -> bool:
        """Return whether the dataset lists the graph as a named graph. FROM NAMED and windows list a graph. In a
        continuous query, FROM lists a graph, too. A listed graph exists even if the graph is empty.
        """
        return iri in self._addressed

    def window(self, iri: str) -> Parts:
        """Return the parts that `WINDOW <iri>` reads."""
        return self._windows[iri]


def _stored(iri: str, catalogue: Catalogue) -> Part:
    name = catalogue.term_id(Iri(iri))
    return Part(0, (0 if iri == STORED_GRAPH else name,), name)


def query_dataset(query: ContinuousQuery, catalogue: Catalogue) -> QueryDataset:
    """Return the dataset of a resolved query."""
    default: list[Part] = []
    named: list[Part] = []
    addressed: dict[str, Parts] = {}
    windows: dict[str, Parts] = {}
    stored_default = tuple(_stored(g.value, catalogue) for g in query.dataset.default)
    if stored_default:
        ids = dict.fromkeys(i for part in stored_default for i in part.graphs if isinstance(i, int))
        default.append(Part(0, tuple(ids)))
    for iri in query.dataset.named:
        part = _stored(iri.value, catalogue)
        named.append(part)
        addressed[iri.value] = (part,)
    for i, clause in enumerate(query.windows):
        part = Part(i + 1, (), catalogue.term_id(Iri(clause.name)))
        if clause.named_window:
            windows[clause.name] = (part,)
            continue
        addressed[clause.name] = (part,)
        (default if clause.in_default else named).append(part)
    if query.continuous:
        for iri in query.dataset.default:
            addressed.setdefault(iri.value, (_stored(iri.value, catalogue),))
        if not default:
            default.append(Part(0, (0,)))
        return QueryDataset(tuple(default), tuple(named), addressed, windows, _open=True, _catalogue=catalogue)
    if query.dataset.all_named:
        return QueryDataset(tuple(default), (Part(0, "named"),), addressed, windows, _open=True, _catalogue=catalogue)
    if query.dataset.default or query.dataset.named:
        return QueryDataset(tuple(default), tuple(named), addressed, windows, _open=False, _catalogue=catalogue)
    whole = (Part(0, (0,)),)
    return QueryDataset(whole, (Part(0, "named"),), addressed, windows, _open=True, _catalogue=catalogue)
