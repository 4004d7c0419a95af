"""Records that services exchange through the log, and their Avro codecs. The schemas in schemas/ are the contract.

`records` has one frozen class per record, `codec` converts records to bytes and back, and `library` finds schemas by
fingerprint. Topics and transactions are in `penstock.log`.
"""

from penstock.wire.codec import WireError, decode, encode
from penstock.wire.records import (
    BucketProgress,
    CoordinatorState,
    DictionaryEntry,
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
    "StreamDeclaration",
    "StreamDrop",
    "StreamEnd",
    "StreamPredicates",
    "Tuples",
    "WireError",
    "decode",
    "encode",
]
