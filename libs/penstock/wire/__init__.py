"""The records that services exchange through the log, and the Avro codec of these records. The schemas in schemas/ are
the contract between the services.

`records` has one frozen class per kind of record. `codec` converts records to bytes and back. `library` finds schemas
by name and fingerprint. `parts` divides large batches, and `insertion_parts` joins the parts of an insertion. Topics
and transactions are in `penstock.log`.
"""

from penstock.wire.codec import WireError, decode, encode
from penstock.wire.records import (
    BucketProgress,
    CoordinatorState,
    DictionaryEntry,
    DictionaryState,
    DispatcherState,
    GroupProgress,
    Heartbeat,
    InsertionDone,
    NamedGraph,
    Placement,
    ProgressPart,
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    ShardLoad,
    ShardRemoval,
    StreamDeclaration,
    StreamDrop,
    StreamEnd,
    StreamPredicates,
    Tuples,
)

__all__ = [
    "BucketProgress",
    "CoordinatorState",
    "DictionaryEntry",
    "DictionaryState",
    "DispatcherState",
    "GroupProgress",
    "Heartbeat",
    "InsertionDone",
    "NamedGraph",
    "Placement",
    "ProgressPart",
    "QueryRegistration",
    "QueryStop",
    "ShardBatch",
    "ShardInsertion",
    "ShardLoad",
    "ShardRemoval",
    "StreamDeclaration",
    "StreamDrop",
    "StreamEnd",
    "StreamPredicates",
    "Tuples",
    "WireError",
    "decode",
    "encode",
]
