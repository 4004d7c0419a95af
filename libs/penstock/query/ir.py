"""The IR (intermediate representation) of all dialects: a checked query, continuous or one-shot, or an update."""

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
    """A time window: (t - range_ms, t] at every instant t, with a step of `step_ms`. `range_ms` None is `[ALL]`. `now`:
    the window is `[NOW]`, and its range and step are 0. `resolve` replaces it by a window whose range is the batch
    interval of the stream. The step of this window is that of COMPUTED EVERY, or the batch interval if there is no
    COMPUTED EVERY.
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
    """A window of the dataset. `name`: the IRI by which patterns refer to the window: the stream's IRI or, if
    `named_window` is set, the window's own.

    `in_default`: whether the default graph includes the window (FROM STREAM); otherwise, only GRAPH (FROM NAMED STREAM)
    or WINDOW (FROM NAMED WINDOW) reads it. `removed`: whether the window contains what the stream has removed (REMOVED
    FROM …), in place of what it has asserted. `at`: the position of the stream's IRI in the text.
    """

    name: str
    stream: str
    range: TimeRange | CountRange
    in_default: bool
    named_window: bool = False
    removed: bool = False
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The stored graphs in FROM and FROM NAMED clauses, in order. `urn:x-penstock:stored` is the stored default graph.

    `all_named`: whether patterns may read all named graphs, although `default` is set (WITH of an update).
    """

    default: tuple[Iri, ...] = ()
    named: tuple[Iri, ...] = ()
    all_named: bool = False


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """A query. It is one-shot if it has no windows and is not `registered`.

    `computed_every_ms` overrides the steps of all windows; `starting_at_ms` sets t0. `from_beginning`: FROM
    BEGINNING. `variables`: the variables of
    SELECT, in order; empty for other forms. `template`: the template of CONSTRUCT. `describe`: the terms of DESCRIBE.
    `algebra`: the pattern with the solution modifiers on top; for a SELECT, it always has a Project. `parameters`: the
    declared parameters of a query set. `at`: the position of REGISTER or of the query form in the text; `name_at`: the
    position of the name.
    """

    text: str
    form: Form
    algebra: Node
    variables: tuple[Variable, ...] = ()
    template: tuple[Triple, ...] = ()
    describe: tuple[Term, ...] = ()
    dataset: Dataset = Dataset()
    entailed: bool = False  # WITH ENTAILMENT RDFS: patterns match the entailed graph (docs/semantics.md §4)
    windows: tuple[WindowClause, ...] = ()
    registered: bool = False
    name: str | None = None
    name_is_iri: bool = False
    publishes: bool = False  # REGISTER STREAM … CONSTRUCT, or another operator with an IRI as name
    r2s: RelationToStream = RelationToStream.RSTREAM
    report_nonempty: bool = False
    # an option of the registration: evaluations have added and removed rows; with `report_nonempty` (query sets only),
    # those without added and removed rows are not reported
    changes: bool = False
    computed_every_ms: int | None = None
    starting_at_ms: int | None = None
    from_beginning: bool = False
    warnings: tuple[str, ...] = ()
    parameters: tuple[Variable, ...] = ()
    at: int = field(default=0, compare=False)
    name_at: int = field(default=0, compare=False)
    entailment_at: int = field(default=0, compare=False)

    @property
    def continuous(self) -> bool:
        """Whether the query is continuous: registered, or with windows."""
        return self.registered or bool(self.windows)


Quad: TypeAlias = "tuple[Iri | Variable | None, Triple]"
"""A triple with its graph (None: the default graph)."""


DataQuad: TypeAlias = "tuple[Iri | None, Triple]"
"""A triple without variables, with its graph (None: the default graph)."""


@dataclass(frozen=True, slots=True)
class ChangeData:
    """INSERT DATA (`insert`) or DELETE DATA: quads without variables."""

    insert: bool
    quads: tuple[DataQuad, ...]
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class Modify:
    """DELETE {…} INSERT {…} WHERE {…}, or DELETE WHERE {…}. For each solution of `query`, the triples of `delete` are
    removed and those of `insert` are added. Blank nodes of `insert` are new for each solution.

    `query`: a one-shot SELECT of the variables in both templates. `own_dataset`: whether the operation has USING or
    WITH. `at`: the position of the first template.
    """

    delete: tuple[Quad, ...]
    insert: tuple[Quad, ...]
    query: ContinuousQuery
    own_dataset: bool = False
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class LoadDocument:
    """LOAD: adds the triples of a document to `graph` (None: the default graph)."""

    source: Iri
    graph: Iri | None
    silent: bool
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class ChangeGraph:
    """CLEAR, DROP or CREATE (`verb`). `target`: a graph, or one of the words DEFAULT, NAMED and ALL."""

    verb: str
    target: Iri | str
    silent: bool
    at: int = field(default=-1, compare=False)


@dataclass(frozen=True, slots=True)
class TransferGraph:
    """ADD, MOVE or COPY (`verb`) of a graph to another (None: the default graph)."""

    verb: str
    source: Iri | None
    target: Iri | None
    silent: bool
    at: int = field(default=-1, compare=False)


Operation: TypeAlias = ChangeData | Modify | LoadDocument | ChangeGraph | TransferGraph


@dataclass(frozen=True, slots=True)
class Update:
    """A SPARQL Update. Its operations become one snapshot; each operation reads the changes of the earlier ones. In all
    operations, None stands for the stored default graph, even where the text has its IRI (docs/semantics.md §4).
    """

    text: str
    operations: tuple[Operation, ...]


Statement: TypeAlias = ContinuousQuery | Update
