"""The log port: ordered, durable topics that all services read and write, behind one contract.

This package contains the contract (`port`), two back ends, topic names, clocks, and tools that work with either back
end (`view`). The back ends are `memory` and `kafka`. `kafka` needs confluent-kafka, and is imported separately. Record
schemas are in schemas/. The codecs for these schemas are in `penstock.wire`.
"""

from penstock.log.errors import (
    Backpressure,
    DeniedError,
    FencedError,
    LogError,
    RebalancedError,
    RecordRefusedError,
    RecordTooLargeError,
    TransientError,
    UnknownTopicError,
)
from penstock.log.memory import MemoryLog
from penstock.log.port import (
    END,
    MAX_RECORD_BYTES,
    START,
    GroupReader,
    Log,
    Message,
    Partition,
    Reader,
    Record,
    Span,
    Topic,
    TransactionalWriter,
    Writer,
)

__all__ = [
    "END",
    "MAX_RECORD_BYTES",
    "START",
    "Backpressure",
    "DeniedError",
    "FencedError",
    "GroupReader",
    "Log",
    "LogError",
    "MemoryLog",
    "Message",
    "Partition",
    "Reader",
    "RebalancedError",
    "Record",
    "RecordRefusedError",
    "RecordTooLargeError",
    "Span",
    "Topic",
    "TransactionalWriter",
    "TransientError",
    "UnknownTopicError",
    "Writer",
]
