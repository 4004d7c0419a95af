"""The log port: ordered, durable topics that every service reads and writes, behind one contract.

Here: the contract (`port`), its two back ends (`memory`, and `kafka`, imported on its own because it needs
confluent-kafka), topic names, clocks, and what is the same over any back end (`view`). Not here: what records mean
(their schemas are in schemas/, their codecs in `penstock.wire`).
"""

from penstock.log.errors import (
    Backpressure,
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
from penstock.log.sizes import MAX_RECORD_BYTES

__all__ = [
    "END",
    "MAX_RECORD_BYTES",
    "START",
    "Backpressure",
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
