"""The syntax tree: what the grammar recognised, before names are resolved and meaning is given.

Leaves are the lexer's tokens: a text with a type (`VAR`, `IRIREF`, `PNAME_LN`, `NAME`, `INTEGER` …) and a position.
`at` is the offset of a node's first token in the text that was parsed, or where there is none, -1; it never takes part
in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lark import Token

_AT = field(default=-1, compare=False, repr=False)


# ---- terms and triples
@dataclass(frozen=True, slots=True)
class LiteralSyntax:
    """A string with a language tag or a datatype; other literals are plain tokens."""

    string: Token
    lang: Token | None = None
    datatype: Token | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class BlankProperties:
    """`[ p o ; … ]`; without properties `[]`."""

    properties: tuple[VerbObjects, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Collection:
    """`( a b … )`; without items `()`, which is rdf:nil."""

    items: tuple[NodeSyntax, ...]
    at: int = _AT


NodeSyntax: TypeAlias = Token | LiteralSyntax | BlankProperties | Collection


@dataclass(frozen=True, slots=True)
class PathSyntax:
    """`operator` is one of `|` `/` `^` `*` `+` `?` `!`; a path of one IRI (or `a`) is the token itself."""

    operator: str
    parts: tuple[VerbSyntax, ...]
    at: int = _AT


VerbSyntax: TypeAlias = Token | PathSyntax


@dataclass(frozen=True, slots=True)
class VerbObjects:
    """One predicate with its list of objects."""

    verb: VerbSyntax
    objects: tuple[NodeSyntax, ...]


@dataclass(frozen=True, slots=True)
class SameSubject:
    """A subject with its predicates; a collection or `[ … ]` may stand without any."""

    subject: NodeSyntax
    properties: tuple[VerbObjects, ...]
    at: int = _AT


# ---- expressions
@dataclass(frozen=True, slots=True)
class Operation:
    """An operator by its name in docs/plan-format.md: `or`, `and`, `not`, `=`, `+`, `neg`, `in`, `notin` …"""

    name: str
    args: tuple[ExprSyntax, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A built-in (by bare name) or a function named by an IRI."""

    function: Token
    args: tuple[ExprSyntax, ...]
    distinct: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class AggregateSyntax:
    """`name` is a keyword; `expr` is None for COUNT(*)."""

    name: str
    expr: ExprSyntax | None
    distinct: bool = False
    separator: Token | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class ExistsSyntax:
    """EXISTS {…} or NOT EXISTS {…}."""

    group: GroupPattern
    negated: bool
    at: int = _AT


ExprSyntax: TypeAlias = Token | LiteralSyntax | Operation | FunctionCall | AggregateSyntax | ExistsSyntax


# ---- patterns
@dataclass(frozen=True, slots=True)
class TriplesBlock:
    """Triples one after another, between two patterns of other kinds."""

    subjects: tuple[SameSubject, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class GroupPattern:
    """`{ … }`: elements in the order of the text. `{ SELECT … }` has the sub-query as its one element."""

    elements: tuple[Element, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Alternatives:
    """`{…} UNION {…} …`; with one branch, a nested group."""

    branches: tuple[GroupPattern, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class OptionalPattern:
    """OPTIONAL {…}."""

    group: GroupPattern
    at: int = _AT


@dataclass(frozen=True, slots=True)
class MinusPattern:
    """MINUS {…}."""

    group: GroupPattern
    at: int = _AT


@dataclass(frozen=True, slots=True)
class GraphPattern:
    """GRAPH name {…}."""

    name: Token
    group: GroupPattern
    at: int = _AT


@dataclass(frozen=True, slots=True)
class WindowPattern:
    """WINDOW name {…} (RSP-QL)."""

    name: Token
    group: GroupPattern
    at: int = _AT


@dataclass(frozen=True, slots=True)
class StreamPattern:
    """STREAM name [window] {…} (CQELS-QL)."""

    stream: Token
    window: WindowSyntax
    group: GroupPattern
    at: int = _AT


@dataclass(frozen=True, slots=True)
class ServicePattern:
    """SERVICE: recognised in order to be refused by name."""

    at: int = _AT


@dataclass(frozen=True, slots=True)
class FilterPattern:
    """FILTER condition."""

    condition: ExprSyntax
    at: int = _AT


@dataclass(frozen=True, slots=True)
class AsVariable:
    """`expression AS ?v`: in BIND, SELECT and GROUP BY."""

    expr: ExprSyntax
    variable: Token
    at: int = _AT


@dataclass(frozen=True, slots=True)
class BindPattern:
    """BIND(expression AS ?v)."""

    binding: AsVariable
    at: int = _AT


@dataclass(frozen=True, slots=True)
class InlineData:
    """VALUES. Cells are tokens (UNDEF among them) and literals."""

    variables: tuple[Token, ...]
    rows: tuple[tuple[Token | LiteralSyntax, ...], ...]
    at: int = _AT


Element: TypeAlias = (
    "TriplesBlock | Alternatives | OptionalPattern | MinusPattern | GraphPattern | WindowPattern"
    " | StreamPattern | ServicePattern | FilterPattern | BindPattern | InlineData | SelectQuery"
)


# ---- queries
@dataclass(frozen=True, slots=True)
class SelectClause:
    """`items` is empty for `SELECT *`; `modifier` is "", "DISTINCT" or "REDUCED"."""

    items: tuple[Token | AsVariable, ...]
    modifier: str = ""
    at: int = _AT


@dataclass(frozen=True, slots=True)
class OrderCondition:
    """One key of ORDER BY."""

    expr: ExprSyntax
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Modifiers:
    """Solution modifiers, as written."""

    group_by: tuple[ExprSyntax | AsVariable, ...] = ()
    having: tuple[ExprSyntax, ...] = ()
    order_by: tuple[OrderCondition, ...] = ()
    limit: Token | None = None
    offset: Token | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class WindowSyntax:
    """`[ … ]` after a stream. `kind` is RANGE, NOW, ALL, TRIPLES or ELEMENTS; `tumbling` where the text says so."""

    kind: str
    size: DurationSyntax | Token | None = None
    step: DurationSyntax | Token | None = None
    tumbling: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class DurationSyntax:
    """A duration as written, without the white space between number and unit."""

    text: str
    at: int = _AT


@dataclass(frozen=True, slots=True)
class DatasetClause:
    """FROM [NAMED] source [window]; `window_name` is RSP-QL's name of the window over the stream `source`."""

    source: Token
    named: bool = False
    window: WindowSyntax | None = None
    window_name: Token | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """A SELECT, at the top or inside a group (then without dataset clauses)."""

    select: SelectClause
    dataset: tuple[DatasetClause, ...]
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """`short` is CONSTRUCT WHERE {…}: the template is the pattern."""

    template: TriplesBlock
    dataset: tuple[DatasetClause, ...]
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None = None
    short: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """`terms` is empty for `DESCRIBE *`."""

    terms: tuple[Token, ...]
    dataset: tuple[DatasetClause, ...]
    where: GroupPattern | None
    modifiers: Modifiers
    values: InlineData | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class AskQuery:
    """ASK {…}."""

    dataset: tuple[DatasetClause, ...]
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None = None
    at: int = _AT


QuerySyntax: TypeAlias = SelectQuery | ConstructQuery | DescribeQuery | AskQuery


# ---- whole texts
@dataclass(frozen=True, slots=True)
class Prologue:
    """BASE (prefix None) and PREFIX declarations, in order."""

    declarations: tuple[tuple[Token | None, Token], ...] = ()


@dataclass(frozen=True, slots=True)
class Registration:
    """REGISTER … AS. `operator` is a keyword: QUERY, STREAM, RSTREAM, ISTREAM or DSTREAM."""

    operator: Token
    name: Token
    computed_every: DurationSyntax | None = None
    report_nonempty: bool = False
    starting_at: Token | LiteralSyntax | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class QueryText:
    """A whole text that is a query, registered or not."""

    prologues: tuple[Prologue, ...]
    registration: Registration | None
    query: QuerySyntax


@dataclass(frozen=True, slots=True)
class InsertDataSyntax:
    """One INSERT DATA: triples by graph name (None is the default graph)."""

    quads: tuple[tuple[Token | None, TriplesBlock], ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class UpdateText:
    """A whole text that is an update: operations, each with the prologue before it."""

    operations: tuple[tuple[Prologue, InsertDataSyntax], ...]


def position(syntax: object) -> int:
    """Offset of the first token of a node or of a token; -1 where it has none."""
    at = syntax.start_pos if isinstance(syntax, Token) else getattr(syntax, "at", -1)
    return -1 if at is None else at
