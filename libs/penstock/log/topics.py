"""Names of topics (docs/kafka.md).

A stream's or query's name is a topic segment where it is made of letters, digits, `_` and `-`, does not begin with `-`,
and is not too long; else its hash is, behind a `-`. Dots are hashed too: Kafka takes `a.b` and `a_b` for one metric
name and refuses the second one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2b

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,127}")
_HASH_BYTES = 16


def segment(name: str) -> str:
    """Return what stands for a stream's or query's name in the names of its topics; unequal for unequal names."""
    if _PLAIN.fullmatch(name):
        return name
    return "-" + blake2b(name.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The topics of one cluster. `prefix` sets clusters on one broker apart."""

    prefix: str = "penstock"

    @property
    def adaptor_group(self) -> str:
        """Consumer group of the adaptors, unless their settings name another one."""
        return f"{self.prefix}.adaptor"

    def events(self, stream: str) -> str:
        """Users' RDF events of a stream."""
        return f"{self.prefix}.events.{segment(stream)}"

    def tuples(self, stream: str) -> str:
        """What the adaptor made of them."""
        return f"{self.prefix}.tuples.{segment(stream)}"

    @property
    def shards(self) -> str:
        """Closed batches; one partition a shard."""
        return f"{self.prefix}.shards"

    @property
    def dictionary(self) -> str:
        """Terms and their ids."""
        return f"{self.prefix}.dictionary"

    @property
    def streams(self) -> str:
        """Declarations of streams."""
        return f"{self.prefix}.streams"

    @property
    def queries(self) -> str:
        """Registrations of queries."""
        return f"{self.prefix}.queries"

    @property
    def status(self) -> str:
        """What became of queries, and of requests made by topic."""
        return f"{self.prefix}.status"

    @property
    def control(self) -> str:
        """The coordinator's log."""
        return f"{self.prefix}.control"

    @property
    def results(self) -> str:
        """Evaluations of all queries without a topic of their own."""
        return f"{self.prefix}.results"

    @property
    def dead_letter(self) -> str:
        """Input that could not be used."""
        return f"{self.prefix}.dead-letter"

    @property
    def late(self) -> str:
        """Events that came after their time had been closed."""
        return f"{self.prefix}.late"

    @property
    def quarantine(self) -> str:
        """Places of records of internal topics that cannot be read and were set aside."""
        return f"{self.prefix}.quarantine"

    @property
    def dispatcher(self) -> str:
        """The dispatcher's own state."""
        return f"{self.prefix}.dispatcher"
