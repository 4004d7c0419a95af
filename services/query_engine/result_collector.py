"""Collects the answers of queries: makes records of them for the next commit of their buckets, and passes published
answers to derived-stream sinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.standing.groups import Cohort, Group, Member
    from penstock.log import Record
    from penstock.replication.replica import Registration
    from penstock.services.query_engine.buckets import Bucket, BucketSet
    from penstock.services.query_engine.result_sinks import ResultSinks


class ResultCollector:
    """The evaluations since the last call of `collect`. Calls `progress` for each evaluation; exceptions of `progress`
    end the engine.
    """

    def __init__(self, sinks: ResultSinks, progress: Callable[[], None]) -> None:
        self._sinks, self._progress = sinks, progress
        self._fired: dict[Group, int] = {}
        self._published: dict[Group, list[tuple[int | None, Block | None, int]]] = {}

    # ---- `EvaluationSink`
    def evaluated(self, group: Group, time: int) -> None:
        """Record that a group was evaluated at an instant."""
        self._progress()
        self._fired[group] = max(time, self._fired.get(group, time))

    def published(self, cohort: Cohort, block: Block | None, following: int) -> None:
        """Record the answer that a cohort publishes at an instant: `block`, None if it publishes nothing. `following`:
        the new watermark of its stream, in ms.
        """
        time = None if block is None else block.reading.time
        self._published.setdefault(cohort.group, []).append((time, block, following))

    # ---- records
    def collect(self, buckets: BucketSet) -> None:
        """Add the records of all evaluations to the pending records of their buckets, and pass the published answers to
        the buckets' sinks.
        """
        fired, self._fired = self._fired, {}
        published, self._published = self._published, {}
        for bucket in buckets:
            for number, group in bucket.groups.items():
                for given in published.get(group, ()):
                    bucket.derived_sinks[number].take(*given)
                if group in fired:
                    bucket.last_ms[number] = max(fired[group], bucket.last_ms.get(number, fired[group]))
                    bucket.fired.add(number)
                    bucket.pending += [
                        record
                        for cohort in group.cohorts
                        for member in cohort
                        for record in self._records(bucket, bucket.members[member.name][1], member)
                    ]

    def drain(self, draining: Bucket, registration: Registration, member: Member) -> list[Record]:
        """Return the records of a stopped query's last evaluations. Passes the query's published answers to the sink of
        the draining bucket.
        """
        for given in self._published.pop(member.group, ()):
            draining.derived_sinks[registration.record.group].take(*given)
        records = self._records(draining, registration, member)
        self._fired.clear()
        return records

    def discard(self, group: Group) -> None:
        """Discard the recorded evaluations of a group, which will be repeated."""
        self._published.pop(group, None)
        self._fired.pop(group, None)

    def _records(self, bucket: Bucket, registration: Registration, member: Member) -> list[Record]:
        record, until = registration.record, registration.until
        evaluations = member.result_queue.take()
        in_time = (e for e in evaluations if until is None or e.time <= until)
        return [self._sinks.record(record, e, bucket.complete) for e in in_time]
