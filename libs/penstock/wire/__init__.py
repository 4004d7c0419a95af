"""Records that services exchange: their Avro codecs (schemas/ is the contract).

`records` has one frozen class a record, `codec` turns them into bytes and back, `library` finds schemas by
fingerprint. Not here: topics and transactions (`penstock.log`), and what records mean to whom.
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
    QueryRegistration,
    QueryStop,
    ShardBatch,
    ShardInsertion,
    ShardLoad,
    StreamDeclaration,
    StreamDrop,
    StreamEnd,
    StreamWanted,
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
    "QueryRegistration",
    "QueryStop",
    "ShardBatch",
    "ShardInsertion",
    "ShardLoad",
    "StreamDeclaration",
    "StreamDrop",
    "StreamEnd",
    "StreamWanted",
    "Tuples",
    "WireError",
    "decode",
    "encode",
]
