"""The cost to start a dictionary from the whole topic or from a snapshot, by the number of entries in its topic.

It is processor time over the log in memory, so without the broker's time to send the records. A thousand entries follow
the snapshot. The ids are compared with those before the restart.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness import Row, check
from penstock.log import MemoryLog
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.services.dictionary.dictionary import DictionaryService
from penstock.services.dictionary.known_terms import KnownTerms
from penstock.term_ids.term_tables import MAX_TERMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.core._native import TermTuple
    from penstock.engine.answers.answer_values import Ids

COMMAND = "python -m benchmarks dictionary_restart"
ENTRIES = (10_000, 100_000, 500_000)
TAIL = 1_000
TOPICS = ClusterTopics(TopicNames("bench"))


def run(*, tiny: bool = False) -> Iterator[Row]:
    """Yield rows, by the number of entries."""
    for entries in (2_000,) if tiny else ENTRIES:
        yield from _restarts(entries)


def _restarts(entries: int) -> Iterator[Row]:
    log = MemoryLog()
    log.create(TOPICS.all())
    service = DictionaryService(log, TOPICS)
    terms: list[TermTuple] = [(1, f"http://example.org/resource/{i}", "", "") for i in range(entries)]
    given = _encode(service, terms)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        service.snapshot(Path(folder))
        _encode(service, [(1, f"http://example.org/later/{i}", "", "") for i in range(TAIL)])
        for name, snapshot in (("the whole topic", None), (f"a snapshot and {TAIL:,} entries", Path(folder))):
            began = time.thread_time_ns()
            made = DictionaryService(log, TOPICS, known=KnownTerms(log, TOPICS.names, snapshot))
            spent = (time.thread_time_ns() - began) / 1e9
            check(len(made), len(service), "terms")
            check(bool(np.array_equal(_encode(made, terms), given)), True, "the same ids")
            yield Row(f"Dictionary: {entries:,} entries, start from {name}", spent, "s", COMMAND, clock="cpu")


def _encode(service: DictionaryService, terms: Sequence[TermTuple]) -> Ids:
    return np.concatenate([service.encode(terms[i : i + MAX_TERMS]) for i in range(0, len(terms), MAX_TERMS)])
