"""Frozen classes of wire records. Each schema in schemas/ has a class with the same fields, and documents these fields.

Columns are little-endian numpy arrays. In decoded records, columns are read-only views of the received bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ids: TypeAlias = NDArray[np.uint64]  # as `Ids` of the core, which is in a higher layer
    Numbers: TypeAlias = NDArray[np.int64]
    Positions: TypeAlias = NDArray[np.uint32]
    Flags: TypeAlias = NDArray[np.uint8]


def _none() -> Numbers:
    return np.empty(0, np.int64)


def _no_flags() -> Flags:
    return np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True, eq=False)
class Tuples:
    """Parsed events of one partition of an events topic."""

    stream: str
    partition: int
    offsets: Numbers
    times: Numbers
    counts: Numbers
    subjects: Ids
    predicates: Ids
    objects: Ids
    advance_ms: int | None = None
    filter_version: int = 0
    event_bytes: int = 0
    removed: Flags = field(default_factory=_no_flags)


@dataclass(frozen=True, slots=True, eq=False)
class ShardBatch:
    """The tuples of a shard from batches that close together. If there are too many tuples for one record, the tuples
    are divided into several records (`wire.parts`).
    """

    stream: str
    first: int
    last: int
    positions: Positions
    times: Numbers
    subjects: Ids
    predicates: Ids
    objects: Ids
    begin_ms: int | None = None
    declared: int = 0
    part: int = 0
    parts: int = 1
    removed: Flags = field(default_factory=_no_flags)


@dataclass(frozen=True, slots=True, eq=False)
class DispatcherState:
    """The dispatcher's state of a stream."""

    stream: str
    number: int
    own_ms: Numbers
    next_offsets: Numbers
    positions: Numbers
    replay_positions: Numbers
    replay_offsets: Numbers
    refused_partitions: Numbers
    refused_first: Numbers
    refused_last: Numbers
    watermark_ms: int | None = None
    closed: int | None = None
    begin_ms: int | None = None
    follows_wall: bool = False
    filter_versions: Numbers = field(default_factory=_none)
    replay_filter_versions: Numbers = field(default_factory=_none)
    cut_batches: Numbers = field(default_factory=_none)
    cut_filter_versions: Numbers = field(default_factory=_none)
    known: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class ShardInsertion:
    """The quads that one part of an insertion adds to a shard. `part`: the number of the part. A large insertion has
    several parts, and each part has a record for every shard.
    """

    number: int
    part: int
    parts: int
    subjects: Ids
    predicates: Ids
    objects: Ids
    graphs: Ids


@dataclass(frozen=True, slots=True, eq=False)
class ShardRemoval:
    """The quads that one part of an insertion removes from a shard. The `ShardRemoval` parts of an insertion precede
    its `ShardInsertion` parts.
    """

    number: int
    part: int
    parts: int
    subjects: Ids
    predicates: Ids
    objects: Ids
    graphs: Ids


@dataclass(frozen=True, slots=True, eq=False)
class ShardLoad:
    """The files of a shard in a bulk load. The labels, the folder and the number of triples are the same in the records
    of all shards, because they describe the whole load.
    """

    number: int
    triples: int
    pieces: int
    folder: str
    graphs: Ids
    predicates: Ids
    files: tuple[str, ...]
    digests: tuple[str, ...]
    bins: Numbers
    directions: Numbers


@dataclass(frozen=True, slots=True)
class DictionaryEntry:
    """A term and its id. `transient`: whether the dictionary can remove the term."""

    id: int
    kind: int
    lexical: str
    datatype: str
    lang: str
    transient: bool = False


@dataclass(frozen=True, slots=True)
class DictionaryState:
    """The state of the dictionary after a transaction. The transaction has changed or removed entries, or has begun a
    generation. `generation`: the latest generation.
    """

    terms: int
    next_slot: int
    generation: int


@dataclass(frozen=True, slots=True)
class StreamDeclaration:
    """Declares a stream. `events_before`, `tuples_before`: the end offsets of the stream's topics at the time of the
    declaration, by partition. `mapping`: the stream's mapping as JSON with sorted names.
    """

    number: int
    iri: str
    name: str
    batch_ms: int
    lateness_ms: int
    timing_all: bool
    timing: tuple[str, ...]
    retention_ms: int
    idle_timeout_ms: int
    max_ahead_ms: int
    absorb_into: str | None = None
    slice_mb: int | None = None
    publisher: str | None = None
    filter_version: int = 0
    events_before: tuple[int, ...] = ()
    tuples_before: tuple[int, ...] = ()
    mapping: str | None = None
    graph_history: bool = False

    @property
    def may_discard(self) -> bool:
        """Whether adaptors are allowed to discard tuples of the stream. This is the case if the stream has timing
        predicates, has no retention and is not derived.
        """
        return (self.timing_all or bool(self.timing)) and self.retention_ms == 0 and self.publisher is None


@dataclass(frozen=True, slots=True, eq=False)
class StreamPredicates:
    """The predicate filter of a stream. Adaptors discard timing tuples whose predicates are not in `predicates`, unless
    `all_since` is set. `generation`: the generation in which adaptors request transient terms. 0: all terms are
    permanent.
    """

    stream: str
    version: int
    predicates: tuple[str, ...]
    since: Numbers
    all_since: int | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of a derived stream. The stream has no further batches."""

    stream: str
    declared: int


@dataclass(frozen=True, slots=True)
class StreamDrop:
    """Drops a stream."""

    number: int
    iri: str


@dataclass(frozen=True, slots=True)
class QueryRegistration:
    """Registers a standing query or a query set. `report`: determines which members of a query set report at an
    instant. None for a single query. `key`: for a query set, the names of the columns that identify a member.
    `parts`: for a query set, the number of its parts (ADR 111). `past`: whether the query begins in the past (ADR 107).
    If it does, `starting_at_ms` is a lower bound of the query's first instant.
    """

    number: int
    name: str
    text: str
    group: int
    streams: tuple[str, ...]
    base: str | None = None
    topic: str | None = None
    publishes: str | None = None
    not_before_ms: int | None = None
    steps: tuple[int, ...] = ()
    starting_at_ms: int | None = None
    max_catch_up: int = 1_000_000
    changes: bool = False
    result_format: str = "json"
    schema_id: int = 0
    row_types: str | None = None
    report: str | None = None
    windows: tuple[int, ...] = ()
    replaces: int = 0
    alone: bool = False
    past: bool = False
    key: tuple[str, ...] = ()
    parts: int = 1


@dataclass(frozen=True, slots=True)
class QueryStop:
    """Stops a standing query."""

    number: int
    name: str


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Shows that a process is alive. Contains the progress of the process, and the shards or buckets that the process
    serves.
    """

    service: str
    instance: str
    incarnation: str
    time_ms: int
    url: str | None = None
    holds: tuple[int, ...] = ()
    vts: dict[str, int] = field(default_factory=dict)
    leaves: bool = False
    ready: bool = True
    loads: dict[str, int] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Placement:
    """The assignment of shards to stores and of buckets to query engines."""

    epoch: int
    shards: dict[str, str]
    buckets: dict[str, str]
    stores: dict[str, str] = field(default_factory=dict)
    preparing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CoordinatorState:
    """The coordinator's counters, and the offsets of processed requests. A new active instance continues from this
    state.
    """

    epoch: int
    commands: int
    insertions: int
    requests: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedGraph:
    """States that queries are allowed to name a graph. Either triples were inserted or loaded into the graph, or a
    dropped stream has put absorbed tuples into the graph.
    """

    iri: str


@dataclass(frozen=True, slots=True)
class InsertionDone:
    """A completed insertion with a name. Another request with the same name stores nothing."""

    number: int
    request: str
    triples: int


@dataclass(frozen=True, slots=True)
class GroupProgress:
    """The committed progress of a query group, without its state."""

    group: int
    last_ms: int | None
    retained: dict[str, int]


@dataclass(frozen=True, slots=True)
class ProgressPart:
    """A part of one piece of a query group's progress. Piece 0 is the state of the group. The other pieces contain the
    group's previous answers.
    """

    group: int
    part: int
    parts: int
    data: bytes
    piece: int = 0


@dataclass(frozen=True, slots=True)
class BucketProgress:
    """Ends a transaction of a bucket. Contains the epoch of the bucket, and the last step that the bucket's engine had
    applied.
    """

    bucket: int
    epoch: int
    step: int
