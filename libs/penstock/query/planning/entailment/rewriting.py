"""The rewriting of one triple pattern over the entailed graph to patterns over the asserted triples (ADR 93).

One premise of each rule is a triple of the data. All other premises are schema triples. The closure of the schema is
known. Each entailed triple therefore follows from one asserted triple in one step, apart from owl:sameAs at its subject
or object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Iri, Literal, Triple, Variable
from penstock.query.algebra.vocabulary import HIERARCHICAL, SUBPROPERTY, TYPE
from penstock.query.planning.entailment.schema import ClosedSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from penstock.query.algebra.tree import Term
    from penstock.query.budget import Budget
    from penstock.query.planning.entailment.schema import Schema

_FRESH = "#e"
_MOST_PATTERNS = 16  # maximum number of predicates with separate patterns; more predicates become rows of a table


@dataclass(frozen=True, slots=True)
class Table:
    """A table of ids that is joined with a pattern."""

    variables: tuple[Variable, ...]
    rows: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A pattern over asserted triples, joined with tables. Its solutions, without the variables that the rewriting has
    added, are solutions of the original pattern over the entailed graph. `subject`: a term that must not be a literal.
    This term is the object of the asserted triple and the subject of the entailed triple.
    """

    pattern: Triple
    tables: tuple[Table, ...] = ()
    subject: Term | None = None


class Rewriter:
    """Rewrites the patterns of one query. `term_id` returns the id of a constant."""

    def __init__(self, schema: Schema, term_id: Callable[[Iri | Literal], int], budget: Budget) -> None:
        self.schema = schema
        self._closed = ClosedSchema(schema, budget)
        self._term_id = term_id
        self._budget = budget
        self._found: dict[Triple, tuple[Rewritten, ...]] = {}
        self._names = 0
        subjects, objects = self._closed.domain_pairs
        self._given_types = frozenset(subjects), frozenset(objects)

    def rewritten(self, pattern: Triple) -> tuple[Rewritten, ...]:
        """Return the patterns that together have the solutions of `pattern` over the entailed graph. Several of these
        patterns can have the same solution, and one pattern can have a solution several times. If the result is a
        single pattern without a table, this pattern has each solution once.
        """
        found = self._found.get(pattern)
        if found is None:
            found = self._found[pattern] = tuple(self._all(pattern))
            self._budget.spend(pattern.at, len(found))
        return found

    def predicates(self, property_: Iri) -> list[tuple[Iri, bool]]:
        """Return pairs (predicate, inverse). The triples of each of these predicates entail triples of a property. If
        `inverse` is true, subject and object change places in the entailed triple.
        """
        below = self._closed.properties_below(self._term_id(property_))
        return [(property_, False), *((Iri(self.schema.iri(name)), inverse) for name, inverse in below)]

    def gives_type(self, property_: Iri, class_: Iri, *, at_object: bool) -> bool:
        """Return whether each triple of a property entails that its subject has a class. With `at_object`, test the
        class of the object instead.
        """
        pair = self._term_id(property_), self._term_id(class_)
        return pair in self._given_types[at_object]

    def is_below(self, below: Iri, class_: Iri) -> bool:
        """Return whether class `below` is a subclass of `class_`, or the same class."""
        return below == class_ or self._term_id(class_) in self._closed.classes_above(self._term_id(below))

    # ---- parts
    def _all(self, pattern: Triple) -> Iterator[Rewritten]:
        parts = self._of_predicate if isinstance(pattern.predicate, Iri) else self._of_any
        for part in parts(pattern):
            yield part
            yield from self._replaced(part, pattern)

    def _of_predicate(self, pattern: Triple) -> Iterator[Rewritten]:
        property_ = pattern.predicate
        assert isinstance(property_, Iri)
        for name, inverse in self.predicates(property_):
            yield from self._below(pattern, property_, name, inverse=inverse)
        if property_.value == TYPE:
            yield from self._typed(pattern)

    def _below(self, pattern: Triple, property_: Iri, name: Iri, *, inverse: bool) -> Iterator[Rewritten]:
        """Yield the patterns in which the predicate `name` replaces the predicate `property_`. Some properties, such as
        rdf:type, have classes or properties as objects. For such a property, the patterns also match triples whose
        object is a subclass or subproperty of the pattern's object.
        """
        closed, object_ = self._closed, pattern.object
        part = _read(pattern, name, inverse=inverse)
        if property_.value not in HIERARCHICAL:
            yield part
            return
        properties = property_.value == SUBPROPERTY
        between = self._fresh()
        read = _with_end(part, between, subject=inverse)
        if isinstance(object_, Iri | Literal):
            number = self._term_id(object_)
            if properties:
                below = [name for name, up in closed.stated_pairs if up == number]
            else:
                below = closed.classes_below(number)
            if below:
                yield _joined(read, self._table((between,), [(number,), *((name,) for name in below)]))
            else:
                yield part
            return
        yield part
        assert isinstance(object_, Variable)
        pairs = list(closed.stated_pairs) if properties else list(closed.class_pairs)
        if pairs:
            yield _joined(read, self._table((between, object_), pairs))

    def _typed(self, pattern: Triple) -> Iterator[Rewritten]:
        """Yield the patterns whose triples entail a type, through the domain or range of a property."""
        for end, pairs in enumerate(self._closed.domain_pairs):
            if isinstance(pattern.object, Iri | Literal):
                number = self._term_id(pattern.object)
                names = [name for name, class_ in pairs if class_ == number]
                if len(names) <= _MOST_PATTERNS:
                    for name in names:
                        yield self._with_edge(pattern, Iri(self.schema.iri(name)), end)
                    continue
                predicate = self._fresh()
                table = self._table((predicate,), [(name,) for name in names])
            elif pairs:
                assert isinstance(pattern.object, Variable)
                predicate = self._fresh()
                table = self._table((predicate, pattern.object), pairs)
            else:
                continue
            yield _joined(self._with_edge(pattern, predicate, end), table)

    def _with_edge(self, pattern: Triple, predicate: Term, end: int) -> Rewritten:
        """Return a pattern that matches the edges with `predicate` at the subject of `pattern`. If `end` is 0, the
        edges begin at this subject. If `end` is 1, the edges end at this subject.
        """
        subject, other = pattern.subject, self._fresh()
        if end:
            return Rewritten(Triple(other, predicate, subject, pattern.at), (), _no_literal(subject))
        return Rewritten(Triple(subject, predicate, other, pattern.at))

    def _of_any(self, pattern: Triple) -> Iterator[Rewritten]:
        """Yield the patterns for a variable as predicate."""
        yield Rewritten(pattern)
        predicate = pattern.predicate
        assert isinstance(predicate, Variable)
        for inverse in (False, True):
            pairs = [(below, up) for below, (up, inverted) in self._closed.property_pairs if inverted == inverse]
            if pairs:
                between = self._fresh()
                yield _joined(_read(pattern, between, inverse=inverse), self._table((between, predicate), pairs))
        for name in HIERARCHICAL:
            property_ = Iri(name, pattern.at)
            is_it = self._table((predicate,), [(self._term_id(property_),)])
            for part in self._of_predicate(replace(pattern, predicate=property_)):
                if part.tables or _is_edge(part, pattern):
                    yield _joined(part, is_it)

    def _replaced(self, part: Rewritten, pattern: Triple) -> Iterator[Rewritten]:
        """Yield up to three variants of a pattern. In these variants, the subject, the object, or both are replaced by
        other terms that are owl:sameAs the replaced terms.
        """
        if not self._closed.same:
            return
        variants = [part]
        for at_subject in (True, False):
            end = part.pattern.subject if at_subject else part.pattern.object
            if end not in (pattern.subject, pattern.object):
                continue  # a table has the values of the end, and all terms that are owl:sameAs these values
            for variant in list(variants):
                between = self._fresh()
                if isinstance(end, Iri | Literal):
                    same = self._closed.same.get(self._term_id(end), frozenset())
                    table = self._table((between,), [(term,) for term in sorted(same)])
                else:
                    assert isinstance(end, Variable)
                    alike = self._closed.same.items()
                    table = self._table((between, end), [(one, term) for term, all_ in alike for one in sorted(all_)])
                if table.rows:
                    variants.append(_joined(_with_end(variant, between, subject=at_subject), table))
        yield from variants[1:]

    # ---- terms and tables
    def _fresh(self) -> Variable:
        self._names += 1
        return Variable(f"{_FRESH}{self._names}")

    def _table(self, variables: Sequence[Variable], rows: Iterable[Sequence[int]]) -> Table:
        table = Table(tuple(variables), tuple(tuple(row) for row in rows))
        most = self._budget.limits.max_entailment_pairs
        if len(table.rows) > most:
            message = f"the rewriting of a pattern has more than {most:,} pairs of terms"
            self._budget.exceeded("max_entailment_pairs", message)
        return table


def _read(pattern: Triple, predicate: Term, *, inverse: bool) -> Rewritten:
    """Return a pattern with another predicate. If the predicate is an inverse, the ends change places."""
    if not inverse:
        return Rewritten(replace(pattern, predicate=predicate))
    read = Triple(pattern.object, predicate, pattern.subject, pattern.at)
    return Rewritten(read, (), _no_literal(pattern.subject))


def _no_literal(term: Term) -> Term | None:
    return None if isinstance(term, Iri) else term


def _with_end(part: Rewritten, end: Variable, *, subject: bool) -> Rewritten:
    """Return a pattern with another subject (`subject`) or object."""
    pattern = replace(part.pattern, subject=end) if subject else replace(part.pattern, object=end)
    return replace(part, pattern=pattern)


def _joined(part: Rewritten, table: Table) -> Rewritten:
    return replace(part, tables=(*part.tables, table))


def _is_edge(part: Rewritten, pattern: Triple) -> bool:
    """Return whether a pattern ignores the object of the original pattern."""
    return pattern.object not in (part.pattern.subject, part.pattern.object)
