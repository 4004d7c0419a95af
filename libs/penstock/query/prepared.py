"""Prepared texts. A text that differs from an earlier text only in constants is neither parsed nor planned again
(docs/adr/0088-prepared-texts.md).

The parameters of a prepared text are its constants in subject and object position and in comparisons, as in a template
(ADR 6). In an update, the constants in the data and in the templates are parameters, too. All texts that share a
prepared text are equal except in these constants.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from penstock.query.algebra.tree import Iri, Literal, Triple
from penstock.query.catalogue import STORED_GRAPH
from penstock.query.ir import ChangeData, ContinuousQuery, Modify, Update
from penstock.query.normalized_text import IRI, LOCAL, STRING, offsets
from penstock.query.planning.quad_templates import templates_of
from penstock.query.resolve import stored_graphs
from penstock.query.templates import parametrise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.query.algebra.tree import Term
    from penstock.query.ir import Operation, Quad, Statement
    from penstock.query.normalized_text import Normalized
    from penstock.query.planning.quad_templates import QuadTemplates
    from penstock.query.templates import Constant, Template

    _Build: TypeAlias = Callable[[str], Constant]
    _Part: TypeAlias = tuple[int | None, Constant]
    """The number of a constant in a text, and a term. The constant's characters follow the term's characters. If the
    number is None, the term is the same in all texts.
    """
    _Terms: TypeAlias = Mapping[int, Constant]


class PreparedQuery:
    """A query with parameters. Two objects are equal only if they are identical, so that a query can be a key in a
    cache of plans.

    `template`: the query with its parameters. `sample`: the constants of the first text, for estimates.
    """

    __slots__ = ("__weakref__", "_numbers", "sample", "template")

    def __init__(self, template: Template, sample: tuple[Constant, ...], numbers: Sequence[int | None]) -> None:
        """`numbers`: for each parameter, the number of its constant in the text. None if the constant is the same in
        all texts that share the query.
        """
        self.template = template
        self.sample = sample
        self._numbers = tuple(numbers)

    @property
    def parameters(self) -> list[tuple[int | None, Constant]]:
        """For each parameter, the number of its constant in the text (None: the same in all texts), and the sample."""
        return list(zip(self._numbers, self.sample, strict=True))

    def bind(self, terms: _Terms) -> BoundQuery:
        """Return the query that has the given constants in place of the parameters. `terms`: the constants of a text,
        in the order of the text.
        """
        pairs = zip(self._numbers, self.sample, strict=True)
        return BoundQuery(self, tuple([same if number is None else terms[number] for number, same in pairs]))


class BoundQuery(NamedTuple):
    """A prepared query with the constants of a text, in the order of the template's parameters."""

    prepared: PreparedQuery
    constants: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class BoundStanding:
    """The text of a standing query as a bound query. `name`: the name in the text, None if the text has no name. A text
    with warnings does not become a BoundStanding.
    """

    text: str
    name: str | None
    query: BoundQuery
    warnings: tuple[str, ...] = ()


class BoundModify(NamedTuple):
    """A `Modify` of a prepared text, with the constants of another text. `constants`: the constants of the templates.
    `query`: the pattern.
    """

    templates: QuadTemplates
    constants: tuple[Constant, ...]
    query: BoundQuery


class BoundUpdate(NamedTuple):
    """An update whose text is prepared. `prepared`: the prepared text."""

    text: str
    operations: tuple[ChangeData | BoundModify, ...]
    prepared: PreparedText


class UpdateParts(NamedTuple):
    """The parts of a prepared update that has one operation, and this operation has a pattern. `terms`: the terms of
    the update. `seed`: for each parameter of `query`, its index in `terms`. `constants`: the same for the constants of
    `templates`.
    """

    terms: tuple[_Part, ...]
    seed: tuple[int, ...]
    constants: tuple[int, ...]
    templates: QuadTemplates
    query: PreparedQuery


class _PreparedModify:
    """A `Modify` of a prepared text. `numbers`: for each constant of the templates, its number in the text. None if the
    constant is the same in all texts.
    """

    __slots__ = ("constants", "query", "templates")

    def __init__(self, operation: Modify, query: PreparedQuery, numbers: Mapping[int, int]) -> None:
        self.query = query
        self.templates, constants = templates_of(operation)
        self.constants = [(numbers.get(constant.at), constant) for constant in constants]

    def bind(self, terms: _Terms) -> BoundModify:
        constants = tuple([same if number is None else terms[number] for number, same in self.constants])
        return BoundModify(self.templates, constants, self.query.bind(terms))


class _PreparedData:
    """A `ChangeData` of a prepared text."""

    __slots__ = ("_numbers", "_operation")

    def __init__(self, operation: ChangeData, numbers: Mapping[int, int]) -> None:
        self._operation = operation
        self._numbers = numbers

    def bind(self, terms: _Terms) -> ChangeData:
        operation = self._operation
        return ChangeData(
            operation.insert,
            tuple([(graph, self._triple(triple, terms)) for graph, triple in operation.quads]),
            operation.at,
        )

    def _triple(self, triple: Triple, terms: _Terms) -> Triple:
        """Return a triple of the prepared text. `terms` replace its parameters."""
        subject, object_ = self._term(triple.subject, terms), self._term(triple.object, terms)
        return Triple(subject, triple.predicate, object_, triple.at)

    def _term(self, term: Term, terms: _Terms) -> Term:
        number = self._numbers.get(term.at)
        return term if number is None else terms[number]


class PreparedText:
    """The common part of texts with the same `Normalized.pattern` and the same fixed constants. `prepare` creates a
    prepared text.

    `fixed`: the numbers of the constants that are not parameters.
    """

    __slots__ = ("__weakref__", "_builders", "_numbers", "_operations", "_query", "_standing", "fixed")

    def __init__(self, statement: Statement, constants: int, builders: dict[int, tuple[int, _Build]]) -> None:
        """`constants`: the number of constants in the text. `builders`: for each parameter, the number of its constant,
        and a function that makes its term. The keys are the offsets of the parameters in the text.
        """
        self._standing = isinstance(statement, ContinuousQuery) and statement.continuous
        self._builders = tuple(builders.values())
        self._numbers = {at: number for at, (number, _) in builders.items()}
        replaced = set(self._numbers.values())
        self.fixed = tuple(number for number in range(constants) if number not in replaced)
        self._query = self._prepared(statement) if isinstance(statement, ContinuousQuery) else None
        self._operations = (
            [] if isinstance(statement, ContinuousQuery) else list(map(self._bindable, statement.operations))
        )

    def bind(
        self, text: str, constants: Sequence[str], name: str | None = None
    ) -> BoundQuery | BoundStanding | BoundUpdate:
        """Return the statement of a text with the same `Normalized.pattern` and the same fixed constants. `constants`,
        `name`: the fields of the text's normalized form. An operation of an update becomes a `BoundModify` if the
        operation has a pattern. The offsets in operations refer to the text that was prepared.
        """
        terms: dict[int, Constant] = {}
        last, written = self._builders[0][1], ""
        made: Constant | None = None
        for number, build in self._builders:
            if made is None or build is not last or constants[number] != written:  # a subject often occurs repeatedly
                last, written = build, constants[number]
                made = build(written)
            terms[number] = made
        if self._query is None:
            return BoundUpdate(text, tuple([operation.bind(terms) for operation in self._operations]), self)
        query = self._query.bind(terms)
        return BoundStanding(text, name, query) if self._standing else query

    def parts(self) -> UpdateParts | None:
        """Return the parts of an update. The result is None if the update does not consist of one operation with a
        pattern. The result is also None if a template has a blank node, or a variable as a graph.
        """
        if len(self._operations) != 1 or not isinstance(operation := self._operations[0], _PreparedModify):
            return None
        if operation.templates.blanks or operation.templates.graphs:
            return None
        builders = dict(self._builders)
        terms: dict[_Part, int] = {}

        def places(parameters: list[tuple[int | None, Constant]]) -> tuple[int, ...]:
            parts = [(number, same if number is None else builders[number]("")) for number, same in parameters]
            return tuple([terms.setdefault(part, len(terms)) for part in parts])

        seed, constants = places(operation.query.parameters), places(operation.constants)
        return UpdateParts(tuple(terms), seed, constants, operation.templates, operation.query)

    def _prepared(self, query: ContinuousQuery) -> PreparedQuery:
        template, sample = parametrise(query)
        return PreparedQuery(template, sample, [self._numbers.get(constant.at) for constant in sample])

    def _bindable(self, operation: Operation) -> _PreparedModify | _PreparedData:
        if isinstance(operation, ChangeData):
            return _PreparedData(operation, self._numbers)
        assert isinstance(operation, Modify)
        return _PreparedModify(operation, self._prepared(operation.query), self._numbers)


def prepare(normalized: Normalized, statement: Statement, *, registered: bool = False) -> PreparedText | None:
    """Prepare a text for later texts with the same `Normalized.pattern`. `statement`: the parsed text. `registered`:
    whether the text is that of a standing query.

    None if each later text must be parsed. This holds for a text without parameters, a text with an entailment, and an
    update with an operation on a document or a whole graph. This also holds for a standing query whose validity depends
    on more than the query's streams (`_is_plain`).
    """
    if isinstance(statement, ContinuousQuery):
        if (
            statement.entailed
            or statement.continuous != registered
            or (registered and not _is_plain(statement, normalized))
        ):
            return None
        parameters = list(parametrise(statement)[1])
    else:
        if not all(isinstance(operation, ChangeData | Modify) for operation in statement.operations):
            return None
        parameters = list(_constants(statement))
    everywhere = Counter(term.at for term in _terms(statement))
    replaced = Counter(term.at for term in parameters)
    numbers = {at: (number, kind) for number, (at, kind) in enumerate(offsets(normalized))}
    builders: dict[int, tuple[int, _Build]] = {}
    for term in parameters:
        number, kind = numbers.get(term.at, (-1, ""))
        if number < 0 or everywhere[term.at] != replaced[term.at]:
            continue
        written = normalized.constants[number]
        build = _builder(kind, written, term)
        if build is not None and build(written) == term:
            builders[term.at] = number, build
    return PreparedText(statement, len(normalized.constants), builders) if builders else None


def _is_plain(query: ContinuousQuery, normalized: Normalized) -> bool:
    """Return whether the validity of a standing query depends only on its streams. All queries that differ from this
    query only in parameters and name are then valid as long as the streams exist.
    """
    begins = query.starting_at_ms is not None or query.from_beginning
    named = query.name == normalized.name and not query.publishes
    graphs = any(iri.value != STORED_GRAPH for iri in stored_graphs(query))
    return named and not (begins or graphs or query.parameters or query.warnings)


def _constants(update: Update) -> Iterator[Constant]:
    """Yield the constants of an update that can be parameters."""
    for operation in update.operations:
        quads: tuple[Quad, ...] = ()
        if isinstance(operation, ChangeData):
            quads = operation.quads
        elif isinstance(operation, Modify):
            quads = operation.delete + operation.insert
            yield from parametrise(operation.query)[1]
        for _, triple in quads:
            for term in (triple.subject, triple.object):
                if isinstance(term, Iri | Literal):
                    yield term


def _terms(part: object) -> Iterator[Constant]:
    """Yield all IRIs and literals of a statement."""
    if isinstance(part, Iri | Literal):
        yield part
    elif isinstance(part, tuple):
        for element in part:
            yield from _terms(element)
    elif is_dataclass(part):
        for field in fields(part):
            yield from _terms(getattr(part, field.name))


def _builder(kind: str, written: str, term: Constant) -> _Build | None:
    """Return a function that makes a term from the text of a constant. The new term has the same form as `term`. None
    if the kind of the constant does not fit this form.
    """
    if isinstance(term, Iri):
        if kind == IRI:
            return _iri
        return partial(_local, term.value.removesuffix(written)) if kind == LOCAL else None
    if kind in (IRI, LOCAL):
        return None
    return partial(_string if kind == STRING else _number, term.datatype, term.lang)


def _iri(written: str) -> Iri:
    return Iri(written[1:-1])


def _local(namespace: str, written: str) -> Iri:
    return Iri(namespace + written)


def _string(datatype: str, lang: str, written: str) -> Literal:
    return Literal(written[1:-1], datatype, lang)


def _number(datatype: str, lang: str, written: str) -> Literal:
    return Literal(written, datatype, lang)
