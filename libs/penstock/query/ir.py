"""The IR (intermediate representation) of all dialects: a checked query, continuous or one-shot, or an INSERT DATA."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Iri, Node, Term, Triple, Variable


class Form(Enum):
    """The query forms of SPARQL."""

    SELECT = "SELECT"
    ASK = "ASK"
    CONSTRUCT = "CONSTRUCT"
    DESCRIBE = "DESCRIBE"


class RelationToStream(Enum):
    """The stream operators (CQL; docs/semantics.md §5)."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time window: (t - range_ms, t] at every instant t, with a step of `step_ms`. `range_ms` None is `[ALL]`. `now`
    is `[NOW]`: the range is the batch interval of the stream, and so is the step without COMPUTED EVERY; `range_ms` and
    `step_ms` are 0 until `resolve` sets them.
    """

    range_ms: int | None
    step_ms: int
    now: bool = False


@dataclass(frozen=True, slots=True)
class CountRange:
    """A count window: the last `size` tuples, reported after every `step` tuples."""

    size: int
    step: int


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A window of the dataset. `name`: the IRI with which patterns refer to the window; that of the stream or, if
    `named_window` is set, its own.

    `in_default`: whether the default graph includes the window (FROM STREAM); otherwise, only GRAPH (FROM NAMED STREAM)
    or WINDOW (FROM NAMED WINDOW) reads it. `at`: the position of the stream's IRI in the text.
    """

    name: str
    stream: str
    range: TimeRange | CountRange
    in_default: bool
    named_window: bool = False
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The stored graphs in FROM and FROM NAMED clauses, in order. `urn:x-penstock:stored` is the stored default
    graph.
    """

    default: tuple[Iri, ...] = ()
    named: tuple[Iri, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """A query. It is one-shot if it has no windows and is not `registered`.

    `computed_every_ms` overrides the steps of all windows; `starting_at_ms` sets t0. `variables`: those of SELECT, in
    order; empty for other forms. `template`: that of CONSTRUCT. `describe`: the terms of DESCRIBE. `algebra`: the
    pattern with the solution modifiers on top; that of a SELECT always has a Project. `at`: the position of REGISTER or
    of the query form in the text; `name_at`: that of the name.
    """

    text: str
    form: Form
    algebra: Node
    variables: tuple[Variable, ...] = ()
    template: tuple[Triple, ...] = ()
    describe: tuple[Term, ...] = ()
    dataset: Dataset = Dataset()
    windows: tuple[WindowClause, ...] = ()
    registered: bool = False
    name: str | None = None
    name_is_iri: bool = False
    publishes: bool = False  # REGISTER STREAM … CONSTRUCT, or another operator with an IRI as name
    r2s: RelationToStream = RelationToStream.RSTREAM
    report_nonempty: bool = False
    computed_every_ms: int | None = None
    starting_at_ms: int | None = None
    warnings: tuple[str, ...] = ()
    at: int = field(default=0, compare=False)
    name_at: int = field(default=0, compare=False)

    @property
    def continuous(self) -> bool:
        """Whether the query is continuous: registered, or with windows."""
        return self.registered or bool(self.windows)


@dataclass(frozen=True, slots=True)
class InsertData:
    """An `INSERT DATA` of SPARQL Update: triples without variables, each with its graph (None: the default graph)."""

    text: str
    quads: tuple[tuple[Iri | None, Triple], ...]


Statement: TypeAlias = ContinuousQuery | InsertData
