"""Measures what a change of an answer costs in a cluster: `PYTHONPATH=libs:tests python -m support.answer_progress ROWS [KIND]`.

The answer has ROWS rows. Each step of its window adds 50 rows and removes 50 rows. Prints, for each kind of query, the
median of the processor time of an evaluation and of a commit in ms, and of the bytes that a commit adds to the progress
topic.
"""

from __future__ import annotations

import sys
import time
from statistics import median
from unittest import mock

from penstock.engine.standing.evaluator import Evaluator
from penstock.services.query_engine.bucket_commits import BucketCommits
from support.small_cluster import SmallCluster

IRI = "http://x/s"
STEPS = 10
CHANGED = 50
RANGE_S = 2 * STEPS
KINDS = {
    "changes": "REGISTER QUERY q AS SELECT",
    "ISTREAM": "REGISTER ISTREAM q AS SELECT",
    "DSTREAM": "REGISTER DSTREAM q AS SELECT",
}


def main(rows: int, *kinds: str) -> None:
    """Print the figures."""
    for kind in kinds or KINDS:
        head = KINDS[kind]
        evaluations, commits, sizes = measured(rows, f"{head} ?s ?o", changes=kind == "changes")
        print(f"{rows} rows, {kind}: evaluation {evaluations:.1f} ms, commit {commits:.1f} ms, {sizes:.0f} bytes")


def measured(rows: int, head: str, *, changes: bool) -> tuple[float, float, float]:
    """Return the medians for one query."""
    cluster = SmallCluster(buckets=1)
    cluster.coordinator.declare(IRI, "s", batch_ms=500, timing="all")
    window = f"FROM STREAM <{IRI}> [RANGE {RANGE_S}s STEP 1s]"
    cluster.coordinator.register("q", f"{head} {window} WHERE {{ ?s <urn:p> ?o }}", changes=changes)
    cluster.advance("s", 100_000)
    cluster.run()
    for second in range(1, RANGE_S + 1):
        many = rows - CHANGED * (2 * STEPS - 1) if second == STEPS else CHANGED
        push(cluster, 100 + second, many)
    evaluations, commits, sizes = [], [], []
    for second in range(RANGE_S + 1, RANGE_S + STEPS):
        before = len(cluster.messages(cluster.topics.progress))
        with timed(Evaluator, "evaluate") as evaluated, timed(BucketCommits, "commit") as committed:
            push(cluster, 100 + second, CHANGED)
        written = cluster.messages(cluster.topics.progress)[before:]
        evaluations.append(sum(evaluated))
        commits.append(sum(committed))
        sizes.append(sum(len(message.key or b"") + len(message.value or b"") for message in written))
    cluster.close()
    return median(evaluations), median(commits), median(sizes)


def push(cluster: SmallCluster, second: int, many: int) -> None:
    """Let a second pass with new tuples."""
    for first in range(0, many, 1_000):
        lines = [f"<urn:s{second}/{i}> <urn:p> <urn:o{i}> ." for i in range(first, min(first + 1_000, many))]
        cluster.push("s", second * 1_000 - 800, "\n".join(lines))
    cluster.advance("s", second * 1_000)
    cluster.run()


class timed:  # noqa: N801
    """Measures the calls of a method, in ms of processor time."""

    def __init__(self, cls: type, name: str) -> None:
        self._call, self.spent = getattr(cls, name), []
        self._patch = mock.patch.object(cls, name, lambda *given: self._measure(*given))  # noqa: PLW0108

    def _measure(self, *given):
        began = time.thread_time()
        found = self._call(*given)
        self.spent.append((time.thread_time() - began) * 1e3)
        return found

    def __enter__(self) -> list[float]:
        self._patch.start()
        return self.spent

    def __exit__(self, *_) -> None:
        self._patch.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
