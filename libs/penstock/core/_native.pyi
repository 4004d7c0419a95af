"""The native core. It is private: applications use `penstock.Engine`. Arrays are numpy arrays. Term ids are uint64, and
times are int64 in ms.

Long calls release the GIL. Errors: DataError, LimitError, StorageError and DataPlaneError of `penstock.errors`.
"""

import builtins
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ids = NDArray[np.uint64]
Times = NDArray[np.int64]
TermTuple = tuple[int, str, str, str]  # (kind: 1 IRI, 2 blank, 3 literal), lexical, datatype, lang

# ---- terms (bindings/terms.cpp)
class Dictionary:
    def __init__(self) -> None: ...
    def intern(self, kind: int, lexical: str, datatype: str = "", lang: str = "") -> int: ...
    def find(self, kind: int, lexical: str, datatype: str = "", lang: str = "") -> int: ...
    def find_many(self, terms: Sequence[TermTuple]) -> Ids: ...  # 0 for unknown terms
    def intern_many(self, terms: Sequence[TermTuple]) -> Ids: ...  # blank nodes: one fresh node per label and call
    def check(self, ids: Ids) -> None: ...  # DataError for an unknown id other than 0; validates external ids
    def blank_count(self) -> int: ...
    def reserve_blanks(self, n: int) -> None: ...
    def set_tick(self, tick: int) -> None: ...
    def tick(self) -> int: ...
    def touch(self, ids: Ids) -> bool: ...
    def keep(self, ids: Ids) -> None: ...
    def sweep(self, oldest_live: int) -> int: ...
    def lease(self) -> Lease: ...
    def size(self) -> int: ...
    def bytes(self) -> int: ...
    def live_bytes(self) -> int: ...  # bytes of live entries; a sweep can lower the number
    def save(self, path: str) -> None: ...
    def load(self, path: str) -> None: ...
    # partial dictionary: a cache of a source's terms, plus private entries (ADR 37)
    def attach(self, service: TermSource) -> None: ...  # the dictionary must be empty
    @property
    def partial(self) -> bool: ...
    def adopt(self, ids: Ids, terms: Sequence[TermTuple]) -> None: ...  # adds terms with the source's ids
    def require(self, ids: Ids) -> int: ...  # fetches missing terms; returns their bytes
    def settle(self, ids: Ids) -> Ids: ...   # private ids -> the source's ids, for terms it knows
    def drop(self, ids: Ids) -> None: ...  # entries of terms that the source has removed
    def removable(self, ids: Ids) -> NDArray[np.uint8]: ...  # 1: the source possibly removes the term; fetches terms

class TermSource(Protocol):
    """The source of a partial dictionary's terms. Any evaluating thread can call it.

    A source that removes terms also has the method `decode_marked`, which is called in place of `decode`. It returns the
    terms, and an array with 1 for each term that the source possibly removes.
    """
    def decode(self, ids: Ids) -> Sequence[TermTuple]: ...
    def find(self, terms: Sequence[TermTuple]) -> Ids: ...  # 0 for unknown terms; assigns no ids

PRIVATE_SLOTS: int  # slots of private entries start here; a source's slots are lower

def check_term(kind: int, lexical: str, datatype: str = "", lang: str = "") -> None: ...  # DataError unless well-formed

class Lease: ...  # released when garbage-collected

class TermTexts:
    """The texts of term ids."""
    def decode(self, ids: Ids) -> list[TermTuple | None]: ...  # None for 0

class TextTerms(TermTexts):
    """Terms that arrived as text, numbered from 1. Blank nodes can have any label."""
    def __init__(self) -> None: ...
    def id_of(self, kind: int, lexical: str, datatype: str = "", lang: str = "") -> int: ...  # equal for equal terms
    def publish(self, ids: Ids) -> Ids: ...  # unchanged: the ids are valid only within their answer

# Answers as text. `format`: json, xml, csv, tsv or ntriples. `columns`: one per variable. `repeats`: for each column, the
# number of successive rows that have a value; after the last value follows the first one again. () = whole columns.
# DataError if the format cannot represent a term.
def answer_text(
    format: str, variables: Sequence[str], columns: Sequence[Ids], repeats: Sequence[int], rows: int, terms: TermTexts
) -> str: ...

# kinds (0: unbound), lexical forms, and the places of datatypes and languages in the list of names (-1: none; empty
# arrays: no term has one)
TermArrays = tuple[Kinds, Texts, NDArray[np.int32], NDArray[np.int32], list[str]]

EarlierColumn = tuple[Ids, Ids, Texts]  # members (ascending), ids, lexical forms

# LimitError if the texts exceed 2 GiB. With the member of each row (ascending) and a column of an earlier answer whose ids
# have the same terms, the texts of IRIs that a member has in both are copied from the earlier column.
def term_arrays(
    terms: TermTexts, ids: Ids, members: Ids | None = None, earlier: EarlierColumn | None = None
) -> TermArrays: ...
def dictionary_sweeps() -> int: ...  # of all dictionaries of the process; without a sweep, no id gets another term

class AnswerText:
    """An answer as text, in parts. The arguments are the same as for `answer_text`."""
    def __init__(
        self, format: str, variables: Sequence[str], columns: Sequence[Ids], repeats: Sequence[int], rows: int, terms: TermTexts
    ) -> None: ...
    def read(self, bytes: int) -> bytes: ...  # rows of at least so many bytes; b"" after the end

# Lines of evaluations (docs/kafka.md). `head`: the start of a JSON object, up to before the answer.
def solutions_line(
    head: str, variables: Sequence[str], columns: Sequence[Ids], repeats: Sequence[int], rows: int, terms: TermTexts
) -> bytes: ...
def triples_line(
    head: str, variables: Sequence[str], columns: Sequence[Ids], repeats: Sequence[int], rows: int, terms: TermTexts
) -> bytes: ...

class QueryNames:
    def __init__(self, names: Sequence[str]) -> None: ...  # by member number; the first number is 1

# The records of members' evaluations in a results topic (docs/kafka.md): their keys, values and numbers of evaluations.
# `members`: ascending. `shared`: the members of the JSON object that all evaluations have in common, without braces.
# Member `present[i]` has the rows from `starts[i]` to `starts[i + 1]`. `bytes`: maximum size of a record with several
# evaluations; 0: each evaluation has a record of its own.
def evaluation_records(
    names: QueryNames, members: Ids, time: int, shared: str, form: str, variables: Sequence[str],
    columns: Sequence[Ids], present: Ids, starts: NDArray[np.int64], terms: TermTexts, bytes: int,
) -> tuple[list[builtins.bytes], list[builtins.bytes], list[int]]: ...

# The records of members' evaluations in Avro (docs/kafka.md): their keys, their values, and the number of records of
# each member. A key is `prefix`, a name, and `@time`; a row after the first one adds `/ROW`. `head` and `instant`: the
# bytes before the name and after it. `types`: for each column of a SELECT, one of s (string), l (long), d (double) and
# b (boolean). Other arguments: as for evaluation_records.
def avro_records(
    names: QueryNames, members: Ids, time: int, prefix: str, head: builtins.bytes, instant: builtins.bytes, form: str,
    types: str, columns: Sequence[Ids], present: Ids, starts: NDArray[np.int64], terms: TermTexts,
) -> tuple[list[builtins.bytes], list[builtins.bytes], list[int]]: ...

class LocalTerms(TermTexts):
    def __init__(self, dictionary: Dictionary) -> None: ...
    def intern(self, kind: int, lexical: str, datatype: str = "", lang: str = "") -> int: ...
    def size(self) -> int: ...
    def settle(self, ids: Ids) -> Ids: ...   # local ids -> the source's ids, with a partial dictionary
    def publish(self, ids: Ids) -> Ids: ...  # local ids -> dictionary ids (local blank nodes become fresh blank nodes)

class BlankScope:
    """The blank node labels of a document that is parsed in parts."""
    def __init__(self) -> None: ...
    def __len__(self) -> int: ...

class MappingProgram:
    def __init__(self, spec: dict[str, Any]) -> None: ...  # see mapping/native_program.py
    # Maps messages, as (time, text). A message that is neither `bytes` nor `str`, or whose time
    # is not an int or None, is declined.
    def map(self, messages: Sequence[tuple[object, object]], max_bytes: int) -> MappedBatch: ...

class MappedBatch:
    def __len__(self) -> int: ...  # events
    @property
    def times(self) -> Times: ...
    @property
    def counts(self) -> Times: ...      # triples of each event
    @property
    def messages(self) -> Times: ...    # the position of each event's message
    @property
    def declined(self) -> list[int]: ...  # positions of messages
    # Without a scope, the scope of a blank node's label is its event. Fresh nodes have no other scope.
    def intern(self, dictionary: Dictionary, scope: BlankScope | None = None) -> tuple[Ids, Ids, Ids]: ...
    def ntriples(self, event: int) -> bytes: ...

def complete_csv_rows(text: bytes) -> int: ...  # the length of the complete rows with which a text begins

class AvroSchema:
    def __init__(self, spec: list[dict[str, Any]]) -> None: ...  # see mapping/encodings/avro_schema.py
    # The JSON text of each message, without its first `skip` bytes; as `str` the reason why it
    # cannot be decoded. A text has at most `max_bytes` plus `max_factor` bytes for each byte.
    def decode(
        self, messages: Sequence[bytes], skip: int, max_depth: int, max_bytes: int, max_factor: int
    ) -> list[bytes | str]: ...

class ProtobufSchema:
    def __init__(self, spec: list[dict[str, Any]]) -> None: ...  # see mapping/encodings/protobuf_schema.py
    # As for AvroSchema. `root`: the number of the messages' type.
    def decode(
        self, root: int, messages: Sequence[bytes], skip: int, max_depth: int, max_bytes: int, max_factor: int
    ) -> list[bytes | str]: ...

class ParsedQuads:
    @property
    def subjects(self) -> Ids: ...
    @property
    def predicates(self) -> Ids: ...
    @property
    def objects(self) -> Ids: ...
    @property
    def graphs(self) -> Ids: ...        # 0 = default graph
    @property
    def timestamps(self) -> Times: ...  # only if requested
    @property
    def bad(self) -> list[tuple[int, bytes, str]]: ...  # (line number, bytes of the line, reason), at most max_bad
    @property
    def bad_count(self) -> int: ...     # number of all bad lines
    @property
    def lines(self) -> int: ...         # lines read

def parse_nquads(
    dictionary: Dictionary,
    data: bytes,
    *,
    quads: bool = True,        # allow a fourth term
    timestamps: bool = False,  # each line starts with an integer
    # True: the first bad line raises DataError (with line and column); False: bad lines are collected
    strict: bool = True,
    max_bad: int = 1000,
    # blank node labels seen so far; None = a fresh scope for this call
    scope: BlankScope | dict[str, int] | None = None,
    keep: bool = False,        # intern new terms permanently, for stored data
    first_line: int = 1,       # number of the first line, if data is a later part of a document
    max_term_bytes: int = 16 << 20,
) -> ParsedQuads: ...

# ---- keys (bindings/keys.cpp)
class KeyIndex:
    """An index from keys to numbers. The numbers are not 0. A key consists of `width` term ids. Keys are given as
    `width` columns.
    """
    def __init__(self, width: int) -> None: ...
    def __len__(self) -> int: ...
    def bytes(self) -> int: ...
    def find(self, keys: Sequence[Ids]) -> Ids: ...               # the number of each key, 0 for unknown keys
    def put(self, keys: Sequence[Ids], numbers: Ids) -> Ids: ...  # the previous number of each key, 0 for new keys
    def remove(self, keys: Sequence[Ids]) -> Ids: ...             # the number of each removed key, 0 for unknown keys

# ---- query texts and templates of updates (bindings/query.cpp)
def normalized(text: str) -> tuple[str, tuple[str, ...]] | None: ...  # the pattern, and the constants
# Instances of templates: s, p, o, g of the quads to remove and of the quads to add. `removed`, `added`: four places per
# quad. A place is 0 for the default graph, 2 * i + 1 for constant i, 2 * i + 2 for column i. `stored`: a name of the
# default graph, or 0.
def instances(
    removed: Sequence[int], added: Sequence[int], constants: Sequence[int], columns: Sequence[Ids], rows: int,
    stored: int,
) -> tuple[tuple[Ids, Ids, Ids, Ids], tuple[Ids, Ids, Ids, Ids]]: ...

class CompiledUpdate:
    """A prepared update with its generic plan. Terms are named by their index in `terms`."""
    # `fixed`: constants that all texts share, by number. `terms`: number of the text's constant (None: the same in all
    # texts), whether it is an IRI, the text before the constant, datatype, language. `seed`: the plan's parameters, as
    # terms. `constants`: those of the templates, as terms. `removed`, `added`: see instances(). `columns`: slots.
    # `degrees`: term, graph, predicate, direction, and the number of neighbours for which the plan was chosen.
    # `expected`: terms, with the ids that the plan contains.
    def __init__(
        self, plan: Plan, fixed: Sequence[tuple[int, str]], terms: Sequence[tuple[int | None, bool, str, str, str]],
        seed: Sequence[int], constants: Sequence[int], removed: Sequence[int], added: Sequence[int],
        columns: Sequence[int], degrees: Sequence[tuple[int, int, int, int, int]],
        expected: Sequence[tuple[int, int]],
    ) -> None: ...
    @property
    def left(self) -> int: ...               # executions before the plan must be checked

class CompiledUpdates:
    """The compiled updates of an engine. One thread at a time may call the methods."""
    def __init__(
        self, store: Store, dictionary: Dictionary, foreign: Foreign | None, timeout_s: float, memory_bytes: int,
        limit: int,                          # on the number of updates
    ) -> None: ...
    def add(self, pattern: str, update: CompiledUpdate, uses: int) -> None: ...
    # the numbers of added and of removed quads; None, without a change: no update for this text, or its plan is wrong
    def execute(self, text: str, now_ms: int, random_seed: int) -> tuple[int, int] | None: ...

# ---- stored graph (bindings/store.cpp)
class Source: ...  # input of execute()

class SourceStats:
    """Statistics of a Source, for the planner."""

class Labelled:
    """The edge labels of a stored graph."""
    def label(self, graph: int, predicate: int) -> int: ...          # 0 if unknown
    def graphs(self) -> list[int]: ...
    # DataError on a conflicting definition
    def define_labels(self, first: int, graphs: Ids, predicates: Ids) -> None: ...
    def number_labels(self, graphs: Ids, predicates: Ids) -> NDArray[np.uint32]: ...  # assigns numbers to new labels
    # (graphs, predicates) of all labels from `first` on
    def label_pairs(self, first: int = 1) -> tuple[Ids, Ids]: ...

class StoreLease:
    """Retains the data that readers of a snapshot need, until this object is garbage-collected."""
    @property
    def snapshot(self) -> int: ...

class StoreCapture:
    """A store's state at one moment. `write` writes the state to disk. Call it at most once, from any thread. A capture
    that is never written has no effect.
    """
    def write(self) -> None: ...
    @property
    def changed_bytes(self) -> int: ...  # before it is written

class Store(Labelled):
    def __init__(
        self, directory: str, shards: int = 1, reserve_bytes: int = 1 << 36,
        own: Sequence[int] = (), publish_logs: bool = False,  # for a store with some shards: their numbers, and append logs in the regions
    ) -> None: ...
    def apply(self, snapshot: int, s: Ids, labels: NDArray[np.uint32], o: Ids, stream: int = 0, batch: int = 0) -> None: ...
    # as apply, for a commit that removes edges, given as s, labels, o, and then adds others
    def apply_change(
        self, snapshot: int, removed: tuple[Ids, NDArray[np.uint32], Ids], added: tuple[Ids, NDArray[np.uint32], Ids],
        stream: int = 0, batch: int = 0,
    ) -> None: ...
    def set_vts(self, stream: int, batch: int) -> None: ...
    def retire(self) -> None: ...  # from now on, reads by other processes fail with "retired"
    def lease(self, snapshot: int) -> StoreLease: ...
    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int: ...
    # removes s, p, o, g and adds others: snapshot, and the numbers of quads added and removed
    def change(
        self, removed: tuple[Ids, Ids, Ids, Ids], added: tuple[Ids, Ids, Ids, Ids], stream: int = 0, batch: int = 0
    ) -> tuple[int, int, int]: ...
    def latest(self) -> int: ...
    def shard_count(self) -> int: ...
    def view(self, bounds: Sequence[tuple[int, int]] = ()) -> Source: ...
    # an earlier state: commits until `before`, and commits in (before, after] that the bounds (stream, batch) include
    def view_past(
        self, before: int, after: int, named: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]
    ) -> Source: ...
    def keep(self, snapshot: int | None) -> None: ...  # retains later commits for view_past
    # own shards, at a snapshot chosen by the caller
    def view_part(self, snapshot: int, excluded: Sequence[int] = ()) -> Source: ...
    def release(self, stream: int, batch: int) -> None: ...
    def edge_count(self) -> int: ...
    def used_bytes(self) -> int: ...
    def log_bytes(self) -> int: ...
    def index_bytes(self) -> int: ...  # the writer's index of duplicates in long lists
    def save(self, directory: str) -> None: ...  # writes everything
    def capture(self, directory: str, previous: str = "") -> StoreCapture: ...  # captures what is not in `previous`
    @staticmethod
    def open(saved: str, directory: str, reserve_bytes: int = 1 << 36, publish_logs: bool = False) -> Store: ...

class Overlay(Source):
    """A view with the changes of an update that is not committed yet. The view holds the difference from `base`."""
    def __init__(self, graph: Labelled, base: Source) -> None: ...
    def add(self, s: Ids, p: Ids, o: Ids, g: Ids) -> None: ...
    def remove(self, s: Ids, p: Ids, o: Ids, g: Ids) -> None: ...
    def added(self) -> tuple[Ids, Ids, Ids, Ids]: ...    # s, p, o, g that `base` lacks
    def removed(self) -> tuple[Ids, Ids, Ids, Ids]: ...  # s, p, o, g of `base`

def shard_numbers(vertices: Ids, shards: int) -> NDArray[np.uint32]: ...  # the shard of each vertex's lists
def source_stats(source: Source, label: int) -> tuple[int, int, int]: ...   # edges, subjects, objects
def source_degree(source: Source, vertex: int, label: int, direction: int) -> int: ...  # 0 out, 1 in

class ShardReader:
    """A read-only mapping of a shard's region, in another process."""
    def __init__(self, path: str) -> None: ...
    def latest(self) -> int: ...
    def neighbours(self, vertex: int, label: int, direction: int) -> Ids: ...
    def vertices(self, label: int, direction: int) -> Ids: ...
    def vts(self, stream: int) -> int | None: ...  # Local_VTS
    def epoch(self) -> int: ...
    def retired(self) -> bool: ...  # the writer has released the region

# ---- bulk loads (bindings/bulk.cpp)
Kinds = NDArray[np.uint8]                                   # 1 IRI, 3 literal
Texts = tuple[NDArray[np.int32], NDArray[np.uint8]]         # offsets (one more than texts) and bytes, in Arrow's layout
def dictionary_columns(
    dictionary: Dictionary, first_slot: int, at_most_terms: int, about_bytes: int
) -> tuple[Ids, Kinds, Texts, Texts, Texts, int]: ...       # ids, kinds, lexical forms, datatypes, languages, next slot
def next_slot(dictionary: Dictionary) -> int: ...           # slots from here on are unused
def intern_columns(dictionary: Dictionary, kinds: Kinds, lexicals: Texts, datatypes: Texts, langs: Texts) -> Ids: ...
def invalid_terms(kinds: Kinds, lexicals: Texts, datatypes: Texts, langs: Texts) -> Kinds: ...  # 1: invalid, 0: valid
def adopt_columns(  # DataError if a term has another id, or an id is taken
    dictionary: Dictionary, ids: Ids, kinds: Kinds, lexicals: Texts, datatypes: Texts, langs: Texts
) -> None: ...
def blank_labels(scope: BlankScope) -> tuple[Ids, Texts]: ...
def sort_edges(graphs: Ids, predicates: Ids, vertices: Ids, values: Ids) -> tuple[Ids, Ids, Ids, Ids]: ...  # distinct
def bins(vertices: Ids, shards: int, pieces: int) -> NDArray[np.uint32]: ...  # shard * pieces + piece

class BulkLoad:
    """A bulk load, which is one commit. Each edge is in the bin of its subject (direction 0) and in the bin of its
    object (direction 1). The caller appends each bin in one call.

    The load is aborted if this object is garbage-collected before publish(). `shards`: the number of shards for which
    the bins were made. 0 means the number of shards of the store. `snapshot`: the number of the snapshot, if the caller
    assigns this number (as for Store.apply). In this case, the store can have only some of the shards. It then loads
    only the bins of these shards.
    """
    def __init__(
        self, store: Store, pieces: int, shards: int = 0, stream: int = 0, batch: int = 0, snapshot: int | None = None
    ) -> None: ...
    def append(self, bin: int, direction: int, graphs: Ids, predicates: Ids, vertices: Ids, values: Ids) -> None: ...
    def publish(self) -> int: ...

# ---- streams (bindings/stream.cpp)
class SliceSource:
    """Closed batches of a stream, for windows."""
    def closed(self) -> int | None: ...

class Beyond:  # accepted events after their stream's watermark
    def __init__(self) -> None: ...
    def add(self, times: Times, watermark: int) -> None: ...
    def after(self, watermark: int) -> Times: ...  # unordered; drops events that the watermark has passed
    def held(self) -> int: ...

class Stream(SliceSource):
    def __init__(
        self, store: Store, dictionary: Dictionary, *, number: int, batch_ms: int,
        timing: Ids | None, absorb_graph: int = 0, memory_bytes: int = 0,   # timing None = all timing
    ) -> None: ...
    @staticmethod
    def decide(  # None: all events are accepted
        ts: Times, watermark: int, lateness_ms: int, wall_ms: int, max_ahead_ms: int
    ) -> tuple[NDArray[np.uint8] | None, int]: ...
    @staticmethod
    # for one of several source partitions; returns the outcomes and the partition's own watermark
    def decide_partition(
        ts: Times, watermark: int, own: int, others: int, lateness_ms: int, wall_ms: int, max_ahead_ms: int
    ) -> tuple[NDArray[np.uint8], int]: ...
    @staticmethod
    def check(dictionary: Dictionary, ts: Times, s: Ids, p: Ids, o: Ids, time_limit: int) -> None: ...  # DataError
    def take(  # appends if all events are accepted and the watermark stays at or below `until`: returns the watermark;
        self, ts: ArrayLike, s: ArrayLike, p: ArrayLike, o: ArrayLike, beyond: Beyond, watermark: int, lateness_ms: int,
        # otherwise None, without effect; TypeError if append() would reject a column
        max_ahead_ms: int, time_limit: int, until: int,
    ) -> int | None: ...
    def append(self, ts: Times, s: Ids, p: Ids, o: Ids) -> None: ...
    # rows with removed[row] != 0 remove their triples from the stored graph, with their batch
    def append_changes(self, ts: Times, s: Ids, p: Ids, o: Ids, removed: NDArray[np.uint8]) -> None: ...
    def removals(self) -> SliceSource: ...   # for windows over removed tuples of the stream
    def close(self, batch: int) -> int: ...   # returns the number of closed batches with tuples
    @staticmethod
    def close_together(streams: list[tuple[Stream, int]]) -> list[int]: ...   # closes each stream up to its batch
    def first_open(self) -> int | None: ...   # the first open batch with tuples
    def release(self, batch: int) -> None: ...
    def oldest_tick(self) -> int | None: ...
    def live_tuples(self) -> int: ...
    def stored_tuples(self) -> int: ...   # number of tuples absorbed since construction or restore
    def live_bytes(self) -> int: ...   # counts against memory_bytes
    def held_bytes(self) -> int: ...   # memory of the region, including reserved slices
    def save(self) -> bytes: ...
    def restore(self, saved: bytes) -> None: ...

class TimeWindow(Source):
    def __init__(self, stream: SliceSource) -> None: ...
    def advance(self, start: int, end: int) -> None: ...
    def size(self) -> int: ...
    def bytes(self) -> int: ...

class CountWindow(Source):
    def __init__(self, stream: SliceSource, size: int, step: int, after_ms: int) -> None: ...
    def take(self, batch: int) -> list[tuple[int, int]]: ...   # (time, position)
    def advance(self, position: int) -> None: ...
    def bounds(self) -> tuple[int, int]: ...
    def size(self) -> int: ...
    def bytes(self) -> int: ...
    def oldest_batch(self) -> int | None: ...
    def save(self) -> builtins.bytes: ...       # the counters: a restart cannot count the tuples since P again
    # into a new window with the same arguments, over the restored stream
    def restore(self, saved: builtins.bytes) -> None: ...

# ---- execution (bindings/exec.cpp)
class Plan:
    def __init__(self, spec: dict[str, Any]) -> None: ...  # docs/plan-format.md

# name, arguments, remaining seconds of the evaluation (0 = no limit) -> result; None = error
Foreign = Callable[[str, list[TermTuple | None], float], TermTuple | None]

class Profile:
    """The rows of a plan's last run, and the times of its last timed run, by node id. Each run with this profile
    replaces the content of the profile.
    """
    def __init__(self) -> None: ...
    timed: bool                                # the next run measures times; a run that succeeds resets it
    @property
    def reused(self) -> bool: ...            # the last run: no look-up had changed, no operator ran
    @property
    def timed_at_ms(self) -> int | None: ...   # `now_ms` of the last timed run
    def rows(self) -> dict[int, int]: ...      # produced in the last run
    def nanos(self) -> dict[int, int]: ...     # own time in the last timed run; empty before
    def maintained(self) -> list[tuple[int | None, str | None, int, int]]: ...
    # of the last run, for each operator that can update its state from changes (ADR 78): node (None: the stream
    # operator), the reason for a complete evaluation (None: updated), changed rows of its input, bytes of its state

class MaintenanceTotals:
    """Counters of an engine's operators that can update their state from changes (ADR 78)."""
    def __init__(self) -> None: ...
    @property
    def updated(self) -> int: ...      # evaluations that updated the state
    @property
    def complete(self) -> int: ...     # evaluations of the complete input
    @property
    def state_bytes(self) -> int: ...  # of the state at present

class Result:
    @property
    def slots(self) -> list[int]: ...
    @property
    def rows(self) -> int: ...
    @property
    def local(self) -> LocalTerms: ...
    @property
    def id(self) -> int: ...  # of the answer, for `since` of a later execution; 0: no change can be found
    @property
    def added(self) -> int | None: ...  # not None: the rows are the change since `since`, first these added rows
    @property
    def nanos(self) -> int: ...  # time spent in the core
    @property
    def cpu_nanos(self) -> int: ...  # processor time of the thread, including the clock calls; 0 unless requested
    def column(self, i: int) -> Ids: ...  # a view, valid while the Result exists
    def columns(self, slots: Sequence[int]) -> list[Ids]: ...  # the columns of some slots, as `column` returns them
    def published(self, slots: Sequence[int]) -> tuple[Ids, ...]: ...  # with dictionary ids for local ids
    def offsets(self, slot: int, members: int) -> NDArray[np.int64]: ...  # rows must be sorted by `slot`; see sort_by
    def sort_by(self, slot: int) -> None: ...  # stable counting sort by member number (ids of seed column 0)

class Seed:
    """Parameters for many runs of a plan, one run at a time. The native module copies the columns, and indexes the rows
    of large seeds by the values of a column (ADR 85).
    """
    def __init__(self, columns: Sequence[Ids]) -> None: ...
    @property
    def bytes(self) -> int: ...  # of the columns and indexes

def index_seeds_from(rows: int) -> int: ...  # of the process: number of rows from which seeds are indexed; 0: always,
                                             # from the first run on. Returns the previous value

def execute(
    plan: Plan,
    store: Labelled,
    dictionary: Dictionary,
    sources: Sequence[Source],
    seed: Seed | Sequence[Ids] | Sequence[int] = (),  # Sequence[int]: one row
    *,
    seed_rows: int = 1,
    now_ms: int = 0,
    windows: Sequence[tuple[int, int]] = (),   # (start, end) by window index
    timeout_s: float = 0.0,                    # 0 = none
    memory_bytes: int = 0,                     # 0 = none
    random_seed: int = 0,
    foreign: Foreign | None = None,
    profile: Profile | None = None,            # filled by the run; one run at a time
    cpu_time: bool = False,
    forker: StepForker | None = None,          # None: all steps run locally
    absent: Sequence[int] = (),                # private ids of the plan's constants, with a partial dictionary
    since: int = 0,                            # id of the answer whose change suffices; 0 = none
    totals: MaintenanceTotals | None = None,   # counts the run's operators
) -> Result: ...

def maintain_from(rows: int) -> int: ...  # of the process: cost of an input, in rows, from which operators keep state;
                                          # 0: always, 2**64 - 1: never. Returns the previous value (ADR 78)
def maintained() -> int: ...  # how often operators of this process have updated their state

ForkPart = tuple[list[int], list[Ids]] | None  # slots and their columns, starting with row numbers; None: no rows

class StepForker: ...  # with it, `execute` can run steps of a plan on nodes

class Forker(StepForker):
    """Runs forks of a plan on other processes. A *node* is a place that executes forks, such as a shard of a store.
    `run` gets the number of the fork in the plan, the rows for each node (`ForkPart`), and the remaining seconds and
    bytes (0 = no limit). It returns the resulting rows of each node.
    """
    def __init__(
        self, owners: Sequence[int], run: Callable[[int, list[ForkPart], float, int], Sequence[ForkPart]]
    ) -> None: ...  # owners: the node of each shard

# the distinct values of a sorted column, and where each run of equal values begins
def runs(column: Ids) -> tuple[Ids, NDArray[np.int64]]: ...

def multiset_difference(a: Sequence[Ids], b: Sequence[Ids]) -> NDArray[np.int64]:
    """Return the numbers of the rows in the multiset difference of `a` and `b` (ISTREAM, DSTREAM). Each row of `b`
    removes one equal row of `a`.
    """

# ---- data plane (bindings/dataplane.cpp)

class RegionEntry:
    @property
    def node(self) -> int: ...
    @property
    def number(self) -> int: ...
    @property
    def kind(self) -> int: ...           # 1 shard, 2 other
    @property
    def subject(self) -> int: ...        # number of the shard
    @property
    def epoch(self) -> int: ...
    @property
    def bytes(self) -> int: ...          # readable bytes at the time of the request
    @property
    def reserve_bytes(self) -> int: ...
    @property
    def path(self) -> str: ...

class ServedRegions:
    # name of an RDMA device; "" selects the first usable one; None: no registration for RDMA
    def __init__(self, rdma_device: str | None = None) -> None: ...
    def publish(
        self, path: str, kind: int = 2, subject: int = 0, epoch: int = 0, reserve_bytes: int = 0, stable: bool = False
    ) -> int: ...
    def withdraw(self, number: int) -> None: ...
    def directory(self) -> list[RegionEntry]: ...

class TlsIdentity:
    """Certificates of this process, for TLS of the data plane. DataPlaneError if OpenSSL is not available."""
    def __init__(self, ca: str, certificate: str, key: str) -> None: ...  # files in PEM

class DataPlaneServer:
    def __init__(
        self, regions: ServedRegions, host: str, port: int, secret: builtins.bytes, connections: int = 256,
        handshake_ms: int = 5000, stalled_ms: int = 30000, tls: TlsIdentity | None = None,
    ) -> None: ...
    @property
    def port(self) -> int: ...
    def counters(self) -> dict[str, int]: ...

class Plane:
    def directory(self, node: int) -> list[RegionEntry]: ...
    # offsets and lengths are multiples of 8; returns the words of all reads, concatenated
    def read(self, node: int, regions: NDArray[np.uint32], offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Ids: ...
    def transport(self, node: int) -> str: ...
    def remark(self, node: int) -> str: ...  # why some reads use another transport

class TcpPlane(Plane):
    def __init__(
        self, node: int, host: str, port: int, secret: builtins.bytes, connect_timeout_ms: int = 2000,
        read_timeout_ms: int = 10000, bytes_in_flight: int = 1 << 25, tls: TlsIdentity | None = None,
    ) -> None: ...
    def is_on_this_machine(self) -> bool: ...
    def offers_rdma(self) -> bool: ...  # as announced on connection

class SharedPlane(Plane):
    def __init__(
        self, node: int, host: str, port: int, secret: builtins.bytes, connect_timeout_ms: int = 2000,
        read_timeout_ms: int = 10000, bytes_in_flight: int = 1 << 25, tls: TlsIdentity | None = None,
    ) -> None: ...

def rdma_plane(
    node: int, host: str, port: int, secret: builtins.bytes, device: str = "", connect_timeout_ms: int = 2000,
    read_timeout_ms: int = 10000, bytes_in_flight: int = 1 << 25, tls: TlsIdentity | None = None,
) -> Plane: ...
def rdma_devices() -> list[str]: ...
def built_with_rdma() -> bool: ...

# ---- the stored graph in stores (bindings/remote.cpp)
class RemoteStore(Labelled):
    """The stored graph in stores. A read raises DataPlaneError if the memory of a store cannot be read."""
    def __init__(self, shards: int) -> None: ...
    # reads the node's shards, or the given ones, by this plane
    def attach(self, node: int, plane: Plane, shards: Sequence[int] | None = None) -> None: ...
    def detach(self, node: int) -> None: ...
    def lease(self, snapshot: int, until: float) -> None: ...     # `until`: a time of time.monotonic()
    def oldest_needed(self, otherwise: int | None = None) -> int: ...  # otherwise: returned if no view is open
    def release(self, stream: int, batch: int) -> None: ...
    def latest(self) -> int: ...
    # at: the snapshot; None = the latest
    def view(self, bounds: Sequence[tuple[int, int]] = (), at: int | None = None) -> Source: ...
    def edge_count(self) -> int: ...
    def rounds(self) -> int: ...                                  # number of read rounds

# for a view of a RemoteStore: its snapshot, and the commits that it excludes
def visible_in(view: Source) -> tuple[int, list[int]]: ...
