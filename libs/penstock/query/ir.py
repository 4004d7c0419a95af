"""The IR of all dialects: a checked, frozen continuous (or one-shot) query, or an INSERT DATA."""

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
    """Stream operators (CQL; docs/semantics.md §5)."""

    RSTREAM = "RSTREAM"
    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time window: (t - range_ms, t], every step_ms. `range_ms` None is `[ALL]`. `now` is `[NOW]`: the range is the
    stream's batch interval, and so is the step without COMPUTED EVERY. `resolve` sets both fields, which are 0 before.
    """

    range_ms: int | None
    step_ms: int
    now: bool = False


@dataclass(frozen=True, slots=True)
class CountRange:
    """The last `size` tuples, reported after every `step` tuples."""

    size: int
    step: int


@dataclass(frozen=True, slots=True)
class WindowClause:
    """A window of the dataset. `name` is the IRI that addresses it: the stream's or (`named_window`) its own.

    `in_default`: merged into the default graph (FROM STREAM); otherwise only accessible by GRAPH (FROM NAMED STREAM) or
    WINDOW (FROM NAMED WINDOW). `at` is the stream's position in the text.
    """

    name: str
    stream: str
    range: TimeRange | CountRange
    in_default: bool
    named_window: bool = False
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Dataset:
    """FROM and FROM NAMED clauses for stored graphs, in order; `urn:x-penstock:stored` is the stored default graph."""

    default: tuple[Iri, ...] = ()
    named: tuple[Iri, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """A query. Without `windows` and `registered` it is one-shot.

    `computed_every_ms` overrides the windows' steps; `starting_at_ms` sets t0. `variables` are SELECT's, in order
    (empty for CONSTRUCT and DESCRIBE). `template` is CONSTRUCT's; `describe` has the terms of DESCRIBE. `algebra` has
    the solution modifiers on top; SELECT always has a Project. `at` is the position of REGISTER or the query form,
    `name_at` that of the name.
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
    """SPARQL Update `INSERT DATA`: ground triples by graph (None = default graph). Blank nodes are BlankNode."""

    text: str
    quads: tuple[tuple[Iri | None, Triple], ...]


Statement: TypeAlias = ContinuousQuery | InsertData
