"""Translation of whole query texts to the IR: registration, dataset, query forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Bgp, Term, Triple, Variable
from penstock.query.ir import ContinuousQuery, Form, RelationToStream
from penstock.query.syntax.ast_nodes import (
    AskQuery,
    ConstructQuery,
    DatasetClause,
    DescribeQuery,
    EntailmentClause,
    QuerySyntax,
    QueryText,
    SelectQuery,
    position,
)
from penstock.query.text_faults import Fault
from penstock.query.translation.context import Context, Pattern, labels_in
from penstock.query.translation.entailment import check_entailed, read_entailment
from penstock.query.translation.names import Names
from penstock.query.translation.query_checks import check_depth, check_operator, check_windows, template_warnings
from penstock.query.translation.solutions import SolutionTranslator
from penstock.query.translation.triples import TripleReader
from penstock.query.translation.window_clauses import check_kinds, milliseconds, read_dataset, starting_instant

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.algebra.tree import Node
    from penstock.query.budget import Budget
    from penstock.query.ir import Dataset
    from penstock.query.syntax.ast_nodes import Registration

_SOLUTIONS = SolutionTranslator()
_R2S = {"ISTREAM": RelationToStream.ISTREAM, "DSTREAM": RelationToStream.DSTREAM}


@dataclass(frozen=True, slots=True)
class _Header:
    """The content of a REGISTER clause."""

    registered: bool = False
    name: str | None = None
    name_is_iri: bool = False
    publishes: bool = False
    r2s: RelationToStream = RelationToStream.RSTREAM
    report_nonempty: bool = False
    computed_every_ms: int | None = None
    starting_at_ms: int | None = None
    from_beginning: bool = False
    parameters: tuple[Variable, ...] = ()


@dataclass(frozen=True, slots=True)
class _Body:
    """The content of a query without its dataset and registration."""

    form: Form
    algebra: Node
    variables: tuple[Variable, ...] = ()
    template: tuple[Triple, ...] = ()
    describe: tuple[Term, ...] = ()


class Translation:
    """The translation of one text. `any_function`: whether calls of unknown functions by IRI are accepted."""

    def __init__(self, text: str, base: str | None, budget: Budget, *, any_function: bool = False) -> None:
        self._text = text
        self._context = Context(Names(base, budget), budget, labels_in(text), any_function=any_function)

    def query(self, syntax: QueryText) -> ContinuousQuery:
        """Translate and check a query. Fault if the query is invalid."""
        context = self._context
        context.names.declare(syntax.prologues[0])
        registered_as = None if syntax.registration is None else self._registered_name(syntax.registration.name)
        for prologue in syntax.prologues[1:]:
            context.names.declare(prologue)
        header = _header(syntax.registration, registered_as, syntax.query, context)
        context.computed_every_ms = header.computed_every_ms
        context.parameters = frozenset(variable.name for variable in header.parameters)
        clauses = syntax.query.dataset
        dataset = read_dataset([clause for clause in clauses if isinstance(clause, DatasetClause)], context)
        entailment_at = read_entailment([clause for clause in clauses if isinstance(clause, EntailmentClause)], context)
        body = _body(syntax.query, context)
        check_depth(body.algebra, context.budget)
        check_kinds(context)
        query = self._put_together(header, body, dataset, entailment_at, syntax)
        check_windows(query)
        check_entailed(query)
        if syntax.registration is not None:
            check_operator(syntax.query, syntax.registration.operator)
        return query

    def _registered_name(self, name: Token) -> tuple[str, bool]:
        """Return the name of a registered query, and whether the name is an IRI. A bare name is not resolved, because
        this name stands for the query and not for a resource.
        """
        if name.type == "NAME":
            return str(name), False
        return self._context.names.iri(name).value, True

    def _put_together(
        self,
        header: _Header,
        body: _Body,
        dataset: Dataset,
        entailment_at: int | None,
        syntax: QueryText,
    ) -> ContinuousQuery:
        start = syntax.query if syntax.registration is None else syntax.registration
        return ContinuousQuery(
            text=self._text,
            form=body.form,
            algebra=body.algebra,
            variables=body.variables,
            template=body.template,
            describe=body.describe,
            dataset=dataset,
            entailed=entailment_at is not None,
            entailment_at=entailment_at or 0,
            windows=tuple(self._context.windows.values()),
            parameters=header.parameters,
            registered=header.registered,
            name=header.name,
            name_is_iri=header.name_is_iri,
            publishes=header.publishes,
            r2s=header.r2s,
            report_nonempty=header.report_nonempty,
            computed_every_ms=header.computed_every_ms,
            starting_at_ms=header.starting_at_ms,
            from_beginning=header.from_beginning,
            warnings=tuple(dict.fromkeys(self._context.warnings)),
            at=start.at,
            name_at=start.at if syntax.registration is None else position(syntax.registration.name),
        )


def _header(
    syntax: Registration | None, name: tuple[str, bool] | None, query: QuerySyntax, context: Context
) -> _Header:
    """Translate REGISTER. The bare name of a stream that the query publishes is resolved against the base, like all
    names of streams.
    """
    if syntax is None or name is None:
        return _Header()
    text, is_iri = name
    operator = syntax.operator.type
    constructs = isinstance(query, ConstructQuery)
    publishes = constructs and (operator == "STREAM" or (is_iri and operator != "QUERY"))
    if publishes and not is_iri and context.names.base is not None:
        text, is_iri = context.names.iri(syntax.name).value, True
    return _Header(
        registered=True,
        name=text,
        name_is_iri=is_iri,
        publishes=publishes,
        r2s=_R2S.get(operator, RelationToStream.RSTREAM),
        report_nonempty=syntax.report_nonempty,
        computed_every_ms=None if syntax.computed_every is None else milliseconds(syntax.computed_every),
        starting_at_ms=None if syntax.starting_at is None else starting_instant(syntax.starting_at),
        from_beginning=syntax.from_beginning,
        parameters=_declared(syntax.parameters),
    )


def _declared(tokens: tuple[Token, ...]) -> tuple[Variable, ...]:
    """Return the declared parameters of a query set. Fault if a parameter is declared twice."""
    found: dict[str, Variable] = {}
    for token in tokens:
        variable = Variable(token[1:], position(token))
        if found.setdefault(variable.name, variable) is not variable:
            raise Fault(f"{token} is declared twice", variable.at, str(token))
    return tuple(found.values())


def _body(query: QuerySyntax, context: Context) -> _Body:
    match query:
        case SelectQuery():
            node, scope = _SOLUTIONS.select(context, query)
            return _Body(Form.SELECT, node, tuple(scope.values()))
        case AskQuery():
            pattern = _SOLUTIONS.pattern(context, query.where)
            return _Body(Form.ASK, _SOLUTIONS.unprojected(context, pattern, query.modifiers, query.values))
        case ConstructQuery():
            return _construct(query, context)
        case DescribeQuery():
            return _describe(query, context)


def _construct(query: ConstructQuery, context: Context) -> _Body:
    if query.short and query.where.elements == (query.template,) and not query.template.subjects:
        pattern = Pattern(Bgp(()), {})
    else:
        pattern = _SOLUTIONS.pattern(context, query.where)
    reader = TripleReader(context)
    reader.read(query.template)
    template = reader.plain()
    algebra = _SOLUTIONS.unprojected(context, pattern, query.modifiers, query.values)
    context.warnings += template_warnings(template, algebra)
    return _Body(Form.CONSTRUCT, algebra, template=template)


def _describe(query: DescribeQuery, context: Context) -> _Body:
    """Translate DESCRIBE. `DESCRIBE *` describes the values of all variables in scope."""
    pattern = Pattern(Bgp(()), {}) if query.where is None else _SOLUTIONS.pattern(context, query.where)
    algebra = _SOLUTIONS.unprojected(context, pattern, query.modifiers, query.values)
    if not query.terms:
        return _Body(Form.DESCRIBE, algebra, describe=tuple(pattern.scope.values()))
    terms: list[Term] = []
    for token in query.terms:
        is_variable = token.type == "VAR"
        terms.append(context.variable(token) if is_variable else context.names.iri(token))
    return _Body(Form.DESCRIBE, algebra, describe=tuple(terms))
