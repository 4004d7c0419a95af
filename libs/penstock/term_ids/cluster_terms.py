"""Global terms within an engine of a cluster (ADR 37).

The log carries ids of the dictionary service, and an engine uses them in its store, windows and plans. The engine
fetches a term from the service on first use and caches it in a partial dictionary. Computed terms have private ids. The
executor replaces private ids by global ones where terms are compared with stored ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.core import _native as native
from penstock.engine.engine_core import EngineCore
from penstock.errors import DataError
from penstock.query.algebra.tree import Iri, Literal
from penstock.query.catalogue import STORED_GRAPH
from penstock.query.ir import ContinuousQuery
from penstock.query.resolve import resolve
from penstock.rdf.terms import BLANK, IRI, LITERAL, is_private, term_fits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.core._native import Ids, TermTuple
    from penstock.query.catalogue import Catalogue
    from penstock.query.ir import Statement

OWN_BLANKS = 1 << 48
"""First number for blank nodes created by this process. The cluster's blank nodes have lower numbers."""
_BATCH = 8_192  # terms per request


class TermService(Protocol):
    """The dictionary service as its clients see it. Ids are durable before `encode` returns. TransientError: retry."""

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, assigning new ones if necessary. Blank nodes: one fresh node per label and call."""
        ...

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals, 0 for unknown ones. Assigns no ids."""
        ...

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms for ids of IRIs and literals. DataError for an unknown id."""
        ...


class TermCache:
    """The cluster's dictionary behind an engine's partial dictionary, which must be empty at construction."""

    def __init__(self, dictionary: native.Dictionary, service: TermService) -> None:
        self._dictionary = dictionary
        self.service = service
        dictionary.attach(service)
        dictionary.reserve_blanks(OWN_BLANKS)

    def known(self, term: TermTuple) -> int:
        """Return the global id of an IRI or literal if it is cached or inline, else 0."""
        found = self._dictionary.find(*term)
        return 0 if is_private(found) else found

    def learn(self, terms: Iterable[TermTuple]) -> None:
        """Assign ids to constants of declarations and registered queries. TransientError: retry.

        Constants that cannot occur in data, such as relative IRIs, are skipped.
        """
        self._add(filter(_well_formed, terms), self.service.encode)

    def look_up(self, terms: Iterable[TermTuple]) -> None:
        """Fetch the ids of those terms that the cluster knows. Terms that are too large are skipped. TransientError:
        retry.
        """
        self._add(filter(term_fits, terms), self.service.find)

    def _add(self, terms: Iterable[TermTuple], ask: Callable[[Sequence[TermTuple]], Ids]) -> None:
        missing = [term for term in dict.fromkeys(terms) if term[0] != BLANK and not self.known(term)]
        for first in range(0, len(missing), _BATCH):
            part = missing[first : first + _BATCH]
            ids = ask(part)
            found = np.flatnonzero(ids)
            self._dictionary.adopt(ids[found], [part[i] for i in found])

    def constant(self, term: TermTuple) -> int:
        """Return the id of a constant of a declaration or registered query. Makes no request if the constant is cached
        (see `learn`). TransientError: retry.
        """
        if not self.known(term):
            self.learn([term])
        return self._dictionary.intern(*term)

    def query_constant(self, term: TermTuple) -> int:
        """Return the id of a constant of a one-shot query: a private id if the cluster's dictionary does not contain
        it. TransientError: retry.
        """
        if not self.known(term):
            self.look_up([term])
        return self._dictionary.intern(*term)


def _well_formed(term: TermTuple) -> bool:
    try:
        native.check_term(*term)
    except DataError:
        return False
    return True


@dataclass(slots=True, kw_only=True)
class ClusterCore(EngineCore):
    """The core of an engine in a cluster: constants have global ids."""

    terms: TermCache

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant of a declaration or registered query. Assigns one if necessary."""
        return self.terms.constant(term_tuple(term))

    def graph_id(self, iri: str) -> int:
        """Return the id of a graph name, 0 if it was never used."""
        self.terms.look_up([(IRI, iri, "", "")])
        return self.terms.known((IRI, iri, "", ""))


@dataclass(slots=True, kw_only=True)
class OneShotCore(ClusterCore):
    """The core for one-shot queries, which assign no ids in the cluster."""

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant: a private id if the cluster's dictionary does not contain it."""
        return self.terms.query_constant(term_tuple(term))


def one_shot_core(core: ClusterCore) -> OneShotCore:
    """Return the engine's core for one-shot queries."""
    shared = core.store, core.dictionary, core.limits, core.clock, core.random, core.foreign
    return OneShotCore(*shared, terms=core.terms)


def constants_of(statement: Statement, catalogue: Catalogue) -> Iterator[TermTuple]:
    """Yield the constants whose ids the planner of a registered query needs, and possibly others."""
    if not isinstance(statement, ContinuousQuery):
        return
    resolved = resolve(statement, catalogue, stands=True)
    for name in (STORED_GRAPH, *(clause.name for clause in resolved.windows)):
        yield (IRI, name, "", "")
    waiting: list[Any] = [resolved]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Iri | Literal):
            yield term_tuple(node)
        elif isinstance(node, tuple):
            waiting += node
        elif is_dataclass(node):
            waiting += (getattr(node, part.name) for part in fields(node))


def term_tuple(term: Iri | Literal) -> TermTuple:
    """Return a constant as (kind, lexical form, datatype, language)."""
    if isinstance(term, Iri):
        return (IRI, term.value, "", "")
    return (LITERAL, term.lexical, term.datatype, term.lang)
