"""Topic names (docs/kafka.md).

A topic name consists of segments with dots between them. The name of a stream or query is used as a segment unchanged
if the name consists of letters, digits, `_` and `-`, does not start with `-` and is not too long. Otherwise the segment
is `-` and the name's hash. Names with dots are hashed, too, because Kafka maps `a.b` and `a_b` to the same metric name.
Kafka rejects a topic if another topic has the same metric name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_HASH_BYTES = 16


def segment(name: str) -> str:
    """Return the segment that stands for the name of a stream or query in topic names. Different names have different
    segments.
    """
    if _PLAIN.fullmatch(name):
        return name
    return "-" + blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Topic names of a cluster. `prefix` separates clusters on one broker."""

    prefix: str = "penstock"

    @property
    def adaptor_group(self) -> str:
        """Default consumer group of the adaptors."""
        return f"{self.prefix}.adaptor"

    def events(self, stream: str) -> str:
        """Events of a stream, produced by users."""
        return f"{self.prefix}.events.{segment(stream)}"

    def tuples(self, stream: str) -> str:
        """Events of a stream as tuples of term ids, produced by adaptors."""
        return f"{self.prefix}.tuples.{segment(stream)}"

    def parameters(self, query_set: str) -> str:
        """Members of a query set, produced by users."""
        return f"{self.prefix}.parameters.{segment(query_set)}"

    @property
    def shards(self) -> str:
        """The total order: closed batches, insertions and commands. One partition per shard."""
        return f"{self.prefix}.shards"

    @property
    def dictionary(self) -> str:
        """Terms and their ids."""
        return f"{self.prefix}.dictionary"

    @property
    def streams(self) -> str:
        """Stream declarations."""
        return f"{self.prefix}.streams"

    @property
    def queries(self) -> str:
        """Query registrations."""
        return f"{self.prefix}.queries"

    @property
    def status(self) -> str:
        """Status of queries, and of requests that users write into topics."""
        return f"{self.prefix}.status"

    @property
    def control(self) -> str:
        """Declarations, placements and other state of the coordinator."""
        return f"{self.prefix}.control"

    @property
    def results(self) -> str:
        """Results of all queries without a separate results topic."""
        return f"{self.prefix}.results"

    @property
    def dead_letter(self) -> str:
        """Dead letters: rejected events and quarantined records, with the reason."""
        return f"{self.prefix}.dead-letter"

    @property
    def late(self) -> str:
        """Late events. The time of a late event is at or before the watermark of its stream."""
        return f"{self.prefix}.late"

    @property
    def quarantine(self) -> str:
        """The quarantine, which contains positions of unreadable records in internal topics."""
        return f"{self.prefix}.quarantine"

    @property
    def dispatcher(self) -> str:
        """The dispatcher's state."""
        return f"{self.prefix}.dispatcher"
