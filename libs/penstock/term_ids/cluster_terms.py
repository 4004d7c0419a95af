"""The terms of a query engine (ADR 37).

The log contains ids of the dictionary service (global ids). The engine uses global ids in its stored graph, windows and
plans. The engine fetches a term from the service when the term is first needed, and caches the term in a partial
dictionary. Computed terms have private ids. To compare computed terms with stored terms, the executor replaces private
ids by global ids.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from penstock.core import _native as native
from penstock.engine.engine_core import EngineCore
from penstock.errors import DataError
from penstock.query.algebra.tree import Iri, Literal, Parameter
from penstock.query.algebra.vocabulary import SCHEMA, TYPE
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
"""The first number of blank nodes that this process creates. Blank nodes of the dictionary service have lower
numbers.
"""
_BATCH = 8_192  # terms per request


class TermService(Protocol):
    """The interface of the dictionary service for clients. All methods raise TransientError if the service is
    unavailable. The caller can then retry.
    """

    def encode(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of terms. New terms get ids, which are durable when the call returns. A blank node label
        denotes one new node per call. The same label in another call denotes another node.
        """
        ...

    def find(self, terms: Sequence[TermTuple]) -> Ids:
        """Return the ids of IRIs and literals, or 0 for terms that are not in the dictionary. Assigns no ids."""
        ...

    def decode(self, ids: Ids) -> list[TermTuple]:
        """Return the terms of ids of IRIs and literals. DataError for an unknown id."""
        ...


class TermCache:
    """Fetches terms and ids from the dictionary service into an engine's partial dictionary. The partial dictionary
    must be empty when the cache is created.
    """

    def __init__(self, dictionary: native.Dictionary, service: TermService) -> None:
        self._dictionary = dictionary
        self.service = service
        dictionary.attach(service)
        dictionary.reserve_blanks(OWN_BLANKS)

    def known(self, term: TermTuple) -> int:
        """Return the global id of an IRI or literal if the id is cached or inline, otherwise 0."""
        found = self._dictionary.find(*term)
        return 0 if is_private(found) else found

    def learn(self, terms: Iterable[TermTuple]) -> None:
        """Fetch the ids of constants of declarations and registered queries. New constants get ids. TransientError if
        the service is unavailable. The caller can then retry.

        Constants that cannot occur in data, such as relative IRIs, are skipped.
        """
        self._add(filter(_well_formed, terms), self.service.encode)

    def look_up(self, terms: Iterable[TermTuple]) -> None:
        """Fetch the ids of terms. Terms that are too large are skipped, and so are terms that the cluster's dictionary
        does not contain. TransientError if the service is unavailable. The caller can then retry.
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
        """Return the id of a constant of a declaration or registered query. Makes no request if the id is cached (see
        `learn`). TransientError as for `learn`.
        """
        if not self.known(term):
            self.learn([term])
        return self._dictionary.intern(*term)

    def query_constant(self, term: TermTuple) -> int:
        """Return the id of a constant of a one-shot query. This is a private id if the cluster's dictionary does not
        contain the constant. TransientError as for `look_up`.
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
    """The core of a query engine: the constants of queries have global ids."""

    terms: TermCache

    def term_id(self, term: Iri | Literal) -> int:
        """Return the global id of a constant of a declaration or registered query. A new constant gets an id."""
        return self.terms.constant(term_tuple(term))

    def known_ids(self, iris: Sequence[str]) -> list[int]:
        """Return the global id of each IRI, or 0 for an IRI that the cluster's dictionary does not contain. Makes one
        request for all ids that are not cached. Each call marks the ids as recently used, so that they stay in the
        cache.
        """
        named = [(IRI, iri, "", "") for iri in iris]
        self.terms.look_up(named)
        found = [self.terms.known(term) for term in named]
        self.dictionary.touch(np.array([number for number in found if number], np.uint64))
        return found


@dataclass(slots=True, kw_only=True)
class OneShotCore(ClusterCore):
    """The core for one-shot queries. Constants of one-shot queries get no new ids in the cluster."""

    def term_id(self, term: Iri | Literal) -> int:
        """Return the id of a constant. This is a private id if the cluster's dictionary does not contain the
        constant.
        """
        return self.terms.query_constant(term_tuple(term))


def one_shot_core(core: ClusterCore) -> OneShotCore:
    """Return a core for one-shot queries that shares everything with the engine's core."""
    shared = core.store, core.dictionary, core.limits, core.clock, core.random, core.foreign
    return OneShotCore(*shared, terms=core.terms)


def constants_of(statement: Statement, catalogue: Catalogue) -> Iterator[TermTuple]:
    """Yield all constants of a continuous query for which the planner needs ids. Other constants can be among them.
    Yields nothing if the statement is not a continuous query.
    """
    if not isinstance(statement, ContinuousQuery):
        return
    resolved = resolve(statement, catalogue, stands=True)
    schema = (*SCHEMA, TYPE) if resolved.entailed else ()  # for the scan of the schema, and for rewritten patterns
    for name in (STORED_GRAPH, *schema, *(clause.name for clause in resolved.windows)):
        yield (IRI, name, "", "")
    waiting: list[Any] = [resolved]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Parameter):
            continue
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
