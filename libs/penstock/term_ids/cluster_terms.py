"""Terms of the cluster as one engine knows them (ADR 37).

The log carries ids of the dictionary service, and an engine uses them everywhere: in its store, its windows and its
plans. What it looks at as a term it asks for, once, and keeps in a partial dictionary, which is a cache. Terms that it
computes itself have private ids; those that others may know get the cluster's where they meet others (the executor
sees to that).
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

    from penstock.core._native import TermTuple
    from penstock.engine.answers.answer_values import Ids
    from penstock.query.catalogue import Catalogue
    from penstock.query.ir import Statement

OWN_BLANKS = 1 << 48
"""Blank nodes that a process makes for itself are numbered from here; those of the cluster stay below."""
_BATCH = 8_192  # terms asked for at once


class TermService(Protocol):
    """The dictionary as its clients see it. Ids are durable before `encode` returns. TransientError: try again."""

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms, made where they are new; blank nodes: one fresh node per label and call."""
        ...

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals, 0 where they have none yet. Makes nothing."""
        ...

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms of IRIs' and literals' ids; DataError for an id that names nothing."""
        ...


class TermCache:
    """The cluster's dictionary in front of an engine's partial one, which it makes of an empty one."""

    def __init__(self, dictionary: native.Dictionary, service: TermService) -> None:
        self._dictionary = dictionary
        self.service = service
        dictionary.attach(service)
        dictionary.reserve_blanks(OWN_BLANKS)

    def known(self, term: TermTuple) -> int:
        """Return the cluster's id of an IRI or literal as far as it is here (or inline), else 0."""
        found = self._dictionary.find(*term)
        return 0 if is_private(found) else found

    def learn(self, terms: Iterable[TermTuple]) -> None:
        """Have ids given to constants of what stands: declarations, registered queries. TransientError: try again.

        What can be in no data, as names that are relative, is left out.
        """
        self._take_in(filter(_well_formed, terms), self.service.encode)

    def look_up(self, terms: Iterable[TermTuple]) -> None:
        """Learn the ids of the terms that the cluster knows: none that is too large. TransientError: try again."""
        self._take_in(filter(term_fits, terms), self.service.find)

    def _take_in(self, terms: Iterable[TermTuple], ask: Callable[[Sequence[TermTuple]], Ids]) -> None:
        missing = [term for term in dict.fromkeys(terms) if term[0] != BLANK and not self.known(term)]
        for first in range(0, len(missing), _BATCH):
            part = missing[first : first + _BATCH]
            ids = ask(part)
            found = np.flatnonzero(ids)
            self._dictionary.adopt(ids[found], [part[i] for i in found])

    def constant(self, term: TermTuple) -> int:
        """Return the id of a constant of what stands. Who has learnt it before has no need to ask."""
        if not self.known(term):
            self.learn([term])
        return self._dictionary.intern(*term)

    def asked(self, term: TermTuple) -> int:
        """Return the id of a constant of a one-shot query: a private one where the cluster has none."""
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
    """The core of an engine of a cluster; constants get the cluster's ids."""

    terms: TermCache

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant of what stands, made where it is new."""
        return self.terms.constant(term_tuple(term))

    def graph_id(self, iri: str) -> int:
        """Return the id of a graph's name, 0 where nobody ever used that name."""
        self.terms.look_up([(IRI, iri, "", "")])
        return self.terms.known((IRI, iri, "", ""))


@dataclass(slots=True, kw_only=True)
class AskingCore(ClusterCore):
    """The same for one-shot queries, which make nothing in the cluster."""

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant, a private one where the cluster has none."""
        return self.terms.asked(term_tuple(term))


def asking(core: ClusterCore) -> AskingCore:
    """Return the core of an engine as one-shot queries use it."""
    shared = core.store, core.dictionary, core.limits, core.clock, core.random, core.foreign
    return AskingCore(*shared, terms=core.terms, nodes=core.nodes)


def constants_of(statement: Statement, catalogue: Catalogue) -> Iterator[TermTuple]:
    """Yield the constants whose ids planning a registered query asks for, and perhaps some more."""
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
    """Return a constant as the core's tuple."""
    if isinstance(term, Iri):
        return (IRI, term.value, "", "")
    return (LITERAL, term.lexical, term.datatype, term.lang)
