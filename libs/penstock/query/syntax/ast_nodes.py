"""The syntax tree, before names are resolved.

Leaves are tokens of the lexer. A token is a text with a type (`VAR`, `IRIREF`, `PNAME_LN`, `NAME`, `INTEGER` …) and a
position. `at` is the offset of a node's first token in the parsed text, or -1 if the node has no token. Comparison of
nodes ignores `at`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lark import Token

_AT = field(default=-1, compare=False, repr=False)


# ---- terms and triples
@dataclass(frozen=True, slots=True)
class LiteralSyntax:
    """A string with a language tag or a datatype. Other literals are tokens."""

    string: Token
    lang: Token | None = None
    datatype: Token | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class BlankProperties:
    """`[ p o ; … ]`. Without properties: `[]`."""

    properties: tuple[VerbObjects, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Collection:
    """`( a b … )`. Without items: `()`, which denotes rdf:nil."""

    items: tuple[NodeSyntax, ...]
    at: int = _AT


NodeSyntax: TypeAlias = Token | LiteralSyntax | BlankProperties | Collection


@dataclass(frozen=True, slots=True)
class PathSyntax:
    """A property path. `operator` is one of `|` `/` `^` `*` `+` `?` `!`. A path of a single IRI (or `a`) is a token."""

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
    """A subject with its predicates. The predicates can be absent after a collection or `[ … ]`."""

    subject: NodeSyntax
    properties: tuple[VerbObjects, ...]
    at: int = _AT


# ---- expressions
@dataclass(frozen=True, slots=True)
class Operation:
    """An operator with its name in docs/plan-format.md: `or`, `and`, `not`, `=`, `+`, `neg`, `in`, `notin` …"""

    name: str
    args: tuple[ExprSyntax, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a built-in function (given by name), or of a function that has an IRI."""

    function: Token
    args: tuple[ExprSyntax, ...]
    distinct: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class AggregateSyntax:
    """An aggregate. `name` is a keyword; `expr` is None for COUNT(*)."""

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
    """Consecutive triples between patterns of other kinds."""

    subjects: tuple[SameSubject, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class GroupPattern:
    """`{ … }`: elements in text order. For `{ SELECT … }`, the sub-query is the only element."""

    elements: tuple[Element, ...]
    at: int = _AT


@dataclass(frozen=True, slots=True)
class Alternatives:
    """`{…} UNION {…} …`. A single branch is a nested group."""

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
    """SERVICE, which is not supported. The grammar accepts SERVICE, so that the error message can name SERVICE."""

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
    """VALUES. Cells are tokens (including UNDEF) and literals."""

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
    """A SELECT clause. `items` is empty for `SELECT *`; `modifier` is "", "DISTINCT" or "REDUCED"."""

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
    """`[ … ]` after a stream. `kind`: RANGE, NOW, ALL, TRIPLES or ELEMENTS. `tumbling`: whether the text contains
    TUMBLING. `second_step`: the STEP of a window that also has a SLIDE (CQELS-QL 2.0).
    """

    kind: str
    size: DurationSyntax | Token | None = None
    step: DurationSyntax | Token | None = None
    tumbling: bool = False
    at: int = _AT
    second_step: DurationSyntax | None = None


@dataclass(frozen=True, slots=True)
class DurationSyntax:
    """A duration as written, without white space between number and unit."""

    text: str
    at: int = _AT


@dataclass(frozen=True, slots=True)
class DatasetClause:
    """FROM [NAMED] source [window]. `window_name`: RSP-QL's name for the window over stream `source`. `removed`:
    whether the window contains the tuples that the stream has removed.
    """

    source: Token
    named: bool = False
    window: WindowSyntax | None = None
    window_name: Token | None = None
    removed: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class EntailmentClause:
    """WITH ENTAILMENT regime."""

    regime: Token
    at: int = _AT


@dataclass(frozen=True, slots=True)
class SelectQuery:
    """A SELECT query or sub-query. A sub-query has no dataset clauses."""

    select: SelectClause
    dataset: tuple[DatasetClause | EntailmentClause, ...]
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """A CONSTRUCT query. `short`: CONSTRUCT WHERE {…}, where the template is also the pattern."""

    template: TriplesBlock
    dataset: tuple[DatasetClause | EntailmentClause, ...]
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None = None
    short: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """A DESCRIBE query. `terms` is empty for `DESCRIBE *`."""

    terms: tuple[Token, ...]
    dataset: tuple[DatasetClause | EntailmentClause, ...]
    where: GroupPattern | None
    modifiers: Modifiers
    values: InlineData | None = None
    at: int = _AT


@dataclass(frozen=True, slots=True)
class AskQuery:
    """ASK {…}."""

    dataset: tuple[DatasetClause | EntailmentClause, ...]
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
    """REGISTER … AS. `operator` is a keyword: QUERY, STREAM, RSTREAM, ISTREAM or DSTREAM. `parameters`: the variables
    that a query set declares. `from_beginning`: FROM BEGINNING, in place of STARTING AT.
    """

    operator: Token
    name: Token
    parameters: tuple[Token, ...] = ()
    computed_every: DurationSyntax | None = None
    report_nonempty: bool = False
    starting_at: Token | LiteralSyntax | None = None
    from_beginning: bool = False
    at: int = _AT


@dataclass(frozen=True, slots=True)
class QueryText:
    """A complete query text, registered or one-shot."""

    prologues: tuple[Prologue, ...]
    registration: Registration | None
    query: QuerySyntax


def position(syntax: object) -> int:
    """Return the offset of a token, or of the first token of a node. -1 if the node has no token."""
    at = syntax.start_pos if isinstance(syntax, Token) else getattr(syntax, "at", -1)
    return -1 if at is None else at
