"""Collects the answers of queries. Makes records of the answers for the next commit of the queries' buckets, and gives
published answers to derived-stream sinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.services.query_engine.sets.set_results import member_records

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.standing.groups import Cohort, Group, Member
    from penstock.replication.registration import Registration
    from penstock.services.query_engine.buckets import Bucket, BucketSet
    from penstock.services.query_engine.measures.load_meter import LoadMeter
    from penstock.services.query_engine.result_sinks import ResultSinks


class ResultCollector:
    """The evaluations since the last call of `collect`. Calls `progress` for each evaluation; exceptions of `progress`
    end the engine. `meter` measures the work of the buckets.
    """

    def __init__(self, sinks: ResultSinks, meter: LoadMeter, progress: Callable[[], None]) -> None:
        self._sinks, self._meter, self._progress = sinks, meter, progress
        self._blocks: dict[Group, list[Block]] = {}
        self._published: dict[Group, list[tuple[int | None, Block | None, int]]] = {}

    # ---- `EvaluationSink`
    def begins(self) -> None:
        """Begin to measure the work of an evaluation."""
        self._meter.begin()

    def evaluated(self, group: Group, block: Block) -> None:
        """Record the answers of a cohort of a group at an instant."""
        self._meter.evaluated(group)
        self._progress()
        self._blocks.setdefault(group, []).append(block)

    def published(self, cohort: Cohort, block: Block | None, following: int) -> None:
        """Record the answer (`block`) that a cohort publishes at an instant. `block` is None if the cohort publishes
        nothing. `following`: the new watermark of the cohort's derived stream, in ms.
        """
        time = None if block is None else block.reading.time
        self._published.setdefault(cohort.group, []).append((time, block, following))

    # ---- records
    def collect(self, buckets: BucketSet) -> None:
        """Add the record of each evaluation to the pending records of its bucket, and give each published answer to the
        sink in its bucket.
        """
        evaluated, self._blocks = self._blocks, {}
        published, self._published = self._published, {}
        if not evaluated and not published:
            return
        for bucket in buckets:
            self._meter.begin()
            for number, group in bucket.groups.items():
                for given in published.get(group, ()):
                    bucket.derived_sinks[number].take(*given)
                if group in evaluated:
                    blocks = evaluated[group]
                    last_ms = max(block.reading.time for block in blocks)
                    bucket.last_ms[number] = max(last_ms, bucket.last_ms.get(number, last_ms))
                    bucket.fired.add(number)
                    feed = bucket.feeds.get(number)
                    for block in blocks:
                        if feed is None:
                            bucket.add(self._sinks.records(block, bucket.members, bucket.complete))
                        else:
                            bucket.add(member_records(self._sinks, feed.registration.record, feed.member, block))
            self._meter.collected(bucket.number, bucket.groups.values())

    def drain(self, bucket: Bucket, draining: Bucket, registration: Registration, member: Member) -> None:
        """Add the records of a stopped query's last evaluations to the pending records of a bucket. Gives the query's
        published answers to the sink of the draining bucket.
        """
        for given in self._published.pop(member.group, ()):
            draining.derived_sinks[registration.record.group].take(*given)
        until = registration.until
        for block in self._blocks.pop(member.group, ()):
            if until is None or block.reading.time <= until:
                bucket.add(self._sinks.records(block, draining.members, draining.complete))

    def discard(self, group: Group) -> None:
        """Discard the recorded evaluations of a group. The engine repeats these evaluations later."""
        self._published.pop(group, None)
        self._blocks.pop(group, None)
