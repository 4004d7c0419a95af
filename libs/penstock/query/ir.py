"""The IR (intermediate representation) of all dialects: a checked query or a checked update. A query is continuous or
one-shot.
"""

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
    """A time window: (t - range_ms, t] at every instant t, with a step of `step_ms`. If `range_ms` is None, the window
    is `[ALL]`. `now`: whether the window is `[NOW]`; its range and step are then 0. `resolve` replaces a `[NOW]`
    window. The range of the new window is the batch interval of the stream. Its step is the interval of COMPUTED EVERY,
    or the batch interval if there is no COMPUTED EVERY.
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
    """A window of the dataset. `name`: the IRI by which patterns refer to the window. This IRI is the window's own IRI
    if `named_window` is set, otherwise the stream's IRI.

    `in_default`: whether the default graph includes the window (FROM STREAM). Otherwise, only GRAPH (FROM NAMED STREAM)
    or WINDOW (FROM NAMED WINDOW) reads the window. `removed`: whether the window contains the tuples that the stream
    has removed (REMOVED FROM …), in place of the asserted tuples. `at`: the position of the stream's IRI in the text.
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

    `all_named`: whether patterns can read all named graphs, although `default` is set (WITH of an update).
    """

    default: tuple[Iri, ...] = ()
    named: tuple[Iri, ...] = ()
    all_named: bool = False


@dataclass(frozen=True, slots=True)
class ContinuousQuery:
    """A query. A query is one-shot if it has no windows and is not `registered`.

    - `computed_every_ms`: overrides the steps of all windows.
    - `starting_at_ms`: sets t0.
    - `from_beginning`: whether the text has FROM BEGINNING.
    - `variables`: the variables of SELECT, in order; empty for other forms.
    - `template`: the template of CONSTRUCT.
    - `describe`: the terms of DESCRIBE.
    - `algebra`: the pattern with the solution modifiers on top. The algebra of a SELECT always has a Project.
    - `parameters`: the declared parameters of a query set.
    - `at`: the position of REGISTER or of the query form in the text. `name_at`: the position of the name.
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
    # evaluations without added and removed rows are not reported
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
        """Whether the query is continuous. A query is continuous if it is registered or has windows."""
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
    removed and the triples of `insert` are added. Blank nodes of `insert` are new for each solution.

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
    """A SPARQL Update. Its operations become one snapshot. Each operation reads the changes of the earlier operations.
    In all operations, None stands for the stored default graph, even if the text contains the IRI of this graph
    (docs/semantics.md §4).
    """

    text: str
    operations: tuple[Operation, ...]


Statement: TypeAlias = ContinuousQuery | Update
