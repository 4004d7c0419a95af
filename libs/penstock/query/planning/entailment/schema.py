"""The schema of entailment and its closure.

The schema is stored as ids. For each predicate, the schema has the pairs (subject, object) of the stored triples.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from penstock.query.algebra.vocabulary import DOMAIN, INVERSE, RANGE, SAME_AS, SUBCLASS, SUBPROPERTY
from penstock.rdf.id_layout import TAG_IRI, TAG_LITERAL, TAG_SHIFT

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias, TypeVar

    from numpy.typing import NDArray

    from penstock.query.budget import Budget

    N = TypeVar("N", bound=Hashable)
    Pair: TypeAlias = tuple[int, int]
    Directed: TypeAlias = tuple[int, bool]
    """A property and its direction. With True, its triples are read from object to subject."""


class Schema:
    """The schema triples of a snapshot."""

    __slots__ = ("_columns", "_iri", "_key", "_predicates")

    def __init__(
        self, columns: Sequence[NDArray[np.uint64]], predicates: Mapping[str, int], iri: Callable[[int], str]
    ) -> None:
        """`columns`: ids of predicates, subjects and objects. `predicates`: the ids of the predicates in the columns,
        by IRI. `iri`: a function that returns the IRI for an id in the columns.
        """
        self._iri = iri
        self._predicates = predicates
        self._key = b"".join(column.tobytes() for column in columns)
        self._columns = np.frombuffer(self._key, np.uint64).reshape(3, -1)

    @classmethod
    def empty(cls) -> Schema:
        """Return a schema without triples."""
        return cls([np.empty(0, np.uint64)] * 3, {}, str)

    def __len__(self) -> int:
        """Return the number of triples."""
        return len(self._columns[0])

    def __eq__(self, other: object) -> bool:
        """Return whether two schemas have the same triples, in the same order."""
        return isinstance(other, Schema) and self._key == other._key

    def __hash__(self) -> int:
        """Return the hash of the triples."""
        return hash(self._key)

    def iri(self, term: int) -> str:
        """Return the IRI for an id that occurs in the schema."""
        return self._iri(term)

    def pairs(self, predicate: str) -> list[Pair]:
        """Return (subject, object) of each triple with a predicate. `predicate`: the IRI of the predicate."""
        number = self._predicates.get(predicate, 0)
        named, subjects, objects = self._columns
        chosen = named == number
        return list(zip(subjects[chosen].tolist(), objects[chosen].tolist(), strict=True))


def _is_iri(term: int) -> bool:
    return term >> int(TAG_SHIFT) == int(TAG_IRI)


def _is_literal(term: int) -> bool:
    return term >> int(TAG_SHIFT) >= int(TAG_LITERAL)


class ClosedSchema:
    """The closure of a schema: all triples about classes and properties that follow from the schema. `same`: for each
    term, the other terms that are owl:sameAs this term, directly or indirectly.

    The closure applies owl:sameAs to both ends of a triple. For example, `:Cat rdfs:subClassOf :Animal` and `:Cat
    owl:sameAs :Felis` give `:Felis rdfs:subClassOf :Animal`. LimitFault if the closure has more than
    `max_entailment_pairs` pairs (subject, object).
    """

    def __init__(self, schema: Schema, budget: Budget) -> None:
        self._budget = budget
        self._left = budget.limits.max_entailment_pairs
        self._count(len(schema))
        resources = [pair for pair in schema.pairs(SAME_AS) if not any(map(_is_literal, pair))]
        self.same = self._classes(resources)
        self._classes_above = self._closed(self._saturated(schema.pairs(SUBCLASS)))
        self._domains = self._by_first(schema.pairs(DOMAIN))
        self._ranges = self._by_first(schema.pairs(RANGE))
        self._properties_above = self._closed(self._property_steps(schema))
        self._stated_above = self._closed(self._saturated(schema.pairs(SUBPROPERTY)))

    # ---- the closure
    def classes_above(self, class_: int) -> frozenset[int]:
        """Return the superclasses of a class, without the class itself."""
        return self._classes_above.get(class_, frozenset())

    @cached_property
    def class_pairs(self) -> tuple[Pair, ...]:
        """The pairs (class, superclass). The two classes of a pair are different."""
        return tuple(sorted((below, up) for below, above in self._classes_above.items() for up in above))

    def classes_below(self, class_: int) -> list[int]:
        """Return the subclasses of a class, without the class itself."""
        return sorted(below for below, above in self._classes_above.items() if class_ in above)

    @cached_property
    def stated_pairs(self) -> tuple[Pair, ...]:
        """The pairs (property, superproperty) that follow from rdfs:subPropertyOf alone. The two properties differ."""
        return tuple(sorted((below, up) for below, above in self._stated_above.items() for up in above))

    @cached_property
    def property_pairs(self) -> tuple[tuple[int, Directed], ...]:
        """The pairs (property p, directed property q). Each triple x p y entails x q y or, if q is inverse, y q x."""
        steps = self._properties_above.items()
        return tuple(sorted((below, up) for (below, flipped), above in steps if not flipped for up in above))

    def properties_below(self, property_: int) -> list[Directed]:
        """Return the properties whose triples entail triples of `property_`, without `property_` itself."""
        return [(below, up[1]) for below, up in self.property_pairs if up[0] == property_]

    @cached_property
    def domain_pairs(self) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
        """Two tuples of pairs (property, class). In the first tuple, the subject of each triple of the property has the
        class. In the second tuple, the object has the class.
        """
        ends: tuple[set[Pair], set[Pair]] = set(), set()
        names = {*self._domains, *self._ranges, *(below for below, _ in self._properties_above)}
        for name in names:
            for above, inverse in ((name, False), *self._properties_above.get((name, False), ())):
                for end, classes in enumerate((self._domains, self._ranges)):
                    for class_ in classes.get(above, ()):
                        found = ends[end != inverse]
                        found.add((name, class_))
                        found.update((name, up) for up in self.classes_above(class_))
                self._count(len(ends[0]) + len(ends[1]), at_once=True)
        return tuple(sorted(ends[0])), tuple(sorted(ends[1]))

    # ---- its computation
    def _count(self, pairs: int, *, at_once: bool = False) -> None:
        most = self._budget.limits.max_entailment_pairs
        if not at_once:
            self._left -= pairs
        if self._left < 0 or (at_once and pairs > most):
            self._budget.exceeded("max_entailment_pairs", f"the schema entails more than {most:,} pairs of terms")
        self._budget.spend(work=1 + pairs // 64)

    def _classes(self, pairs: Iterable[Pair]) -> dict[int, frozenset[int]]:
        """Return, for each term in a pair, the other terms of its equivalence class. The two terms of each pair are
        equivalent.
        """
        members: dict[int, set[int]] = {}
        for one, other in pairs:
            first, second = members.setdefault(one, {one}), members.setdefault(other, {other})
            if first is second:
                continue
            if len(first) < len(second):
                first, second = second, first
            first |= second
            members.update(dict.fromkeys(second, first))
        same = {}
        for term, together in members.items():
            self._count(len(together) - 1)
            if len(together) > 1:
                same[term] = frozenset(together - {term})
        return same

    def _alike(self, term: int) -> Iterator[int]:
        yield term
        yield from self.same.get(term, ())

    def _saturated(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        for one, other in pairs:
            for below in self._alike(one):
                for above in self._alike(other):
                    self._count(1)
                    yield below, above

    def _by_first(self, pairs: Iterable[Pair]) -> dict[int, set[int]]:
        found: defaultdict[int, set[int]] = defaultdict(set)
        for one, other in self._saturated(pairs):
            if _is_iri(one):
                found[one].add(other)
        return dict(found)

    def _property_steps(self, schema: Schema) -> Iterator[tuple[Directed, Directed]]:
        for below, above in self._properties(schema.pairs(SUBPROPERTY)):
            yield (below, False), (above, False)
            yield (below, True), (above, True)
        for one, other in self._properties(schema.pairs(INVERSE)):
            for flip in (False, True):
                yield (one, flip), (other, not flip)
                yield (other, flip), (one, not flip)
        for one, others in self.same.items():
            for other in others:
                if _is_iri(one) and _is_iri(other):
                    yield (one, False), (other, False)
                    yield (one, True), (other, True)

    def _properties(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        return (pair for pair in self._saturated(pairs) if all(map(_is_iri, pair)))

    def _closed(self, steps: Iterable[tuple[N, N]]) -> dict[N, frozenset[N]]:
        """Return the nodes that are reachable from each node over one or more steps, without the node itself."""
        direct: defaultdict[N, set[N]] = defaultdict(set)
        for below, above in steps:
            direct[below].add(above)
        closed = {}
        for node in direct:
            seen = {node}
            waiting = [node]
            while waiting:
                new = direct.get(waiting.pop(), set()) - seen
                self._count(len(new))
                seen |= new
                waiting += new
            closed[node] = frozenset(seen - {node})
        return closed
