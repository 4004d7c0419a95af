"""The actions of the schedule: evaluations, publication of derived streams, merging of cohorts, and release of
state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.engine.intake.rejected_events import DeadLetter
from penstock.engine.standing.derived_streams import following_of, move_on, publish
from penstock.engine.windows.slice_release import release
from penstock.errors import LimitError

if TYPE_CHECKING:
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.history.timeline import Timeline
    from penstock.engine.intake.rejected_events import Output
    from penstock.engine.intake.streams import LiveStream, Streams
    from penstock.engine.standing.evaluator import Evaluator
    from penstock.engine.standing.groups import Cohort, Group
    from penstock.engine.standing.registry import Registry
    from penstock.engine.windows.term_collection import Forgetting

_RELEASE_EVERY = 64  # number of closed batches with tuples after which a pass releases state


class EvaluationSink(Protocol):
    """Receives the evaluations of a query engine, and the answers that queries publish. In a cluster, a published
    answer reaches the derived stream through the log, not directly.
    """

    def begins(self) -> None:
        """Handle the beginning of a cohort's evaluation."""

    def evaluated(self, group: Group, block: Block) -> None:
        """Handle the answers of a cohort of `group` at an instant."""

    def published(self, cohort: Cohort, block: Block | None, following: int) -> None:
        """Handle the answer that a cohort publishes. `following` is the new watermark of the derived stream, in ms. If
        `block` is None, there is no answer, and only the watermark advances.
        """


class Firing:
    """Executes the actions of `schedule.Work` for one engine. Without a `sink`, answers are added to the logs of the
    cohorts, and published answers are added directly to the derived streams.
    """

    def __init__(
        self,
        core: EngineCore,
        streams: Streams,
        evaluator: Evaluator,
        forgetting: Forgetting,
        registry: Registry,
        dead: Output[DeadLetter],
        sink: EvaluationSink | None = None,
        timeline: Timeline | None = None,
    ) -> None:
        self._core = core
        self._streams = streams
        self._evaluator = evaluator
        self._forgetting = forgetting
        self._registry = registry
        self._dead = dead
        self._sink = sink
        self._timeline = timeline
        self._touched: dict[LiveStream, None] = {}
        self._since_release = 0
        self.evaluations = 0

    def fire(self, cohort: Cohort) -> None:
        """Evaluate the cohort's next instant. If the cohort publishes a stream, the stream gets the tuples and a new
        watermark.
        """
        group, time = cohort.group, cohort.next
        assert time is not None
        if self._sink is not None:
            self._sink.begins()
        block = self._evaluator.evaluate(cohort, time)
        assert cohort.trigger is not None
        cohort.trigger.take()
        self.evaluations += len(cohort)
        if self._sink is None:
            cohort.log.append(block)
        else:
            self._sink.evaluated(group, block)
        if group.publishes is not None:
            self._publish(cohort, block, group.publishes)
        if group.apart:
            group.settle(self._registry.pool)

    def _publish(self, cohort: Cohort, block: Block, stream: LiveStream) -> None:
        """Add an answer to the derived stream. An answer that exceeds the stream's memory limit becomes a dead letter.
        The watermark advances in both cases.
        """
        if self._sink is not None:
            self._sink.published(cohort, block, following_of(cohort))
            return
        self._touched[stream] = None
        try:
            publish(cohort, block, self._registry.begin)
        except LimitError as error:
            data = block.triples().to_ntriples().encode()
            self._dead.put(DeadLetter(stream.iri, block.reading.time, str(error), data))
            move_on(cohort, self._registry.begin)

    def skipped(self, cohort: Cohort) -> None:
        """Advance the stream that a cohort publishes, after the cohort has skipped instants."""
        if cohort.group.publishes is not None:
            self.counted(cohort)
            self._touched[cohort.group.publishes] = None
        cohort.group.settle(self._registry.pool)

    def counted(self, cohort: Cohort) -> None:
        """Advance the watermark of the cohort's derived stream to `following_of(cohort)`, without an execution."""
        if self._sink is not None:
            self._sink.published(cohort, None, following_of(cohort))
        else:
            move_on(cohort, self._registry.begin)

    def closed(self, stream: LiveStream, batches: int) -> None:
        """Record that a stream has closed batches. `batches` is the number of closed batches that have tuples. After
        every `_RELEASE_EVERY` such batches, the call also releases unused state, so that unused state does not
        accumulate.
        """
        self._touched[stream] = None
        if self._timeline is not None:
            self._timeline.closed(stream)
        self._streams.progressed()
        self._since_release += batches
        if self._since_release >= _RELEASE_EVERY:
            self.tidy()

    def tidy(self) -> None:
        """Release unused slices of the streams that have advanced since the last call. If a sweep of the dictionary is
        due, the call also releases unused terms.
        """
        self._forgetting.tick(self._since_release)
        for stream in self._touched:
            release(stream, self._registry.readers.of(stream), self._core.store)
        self._touched.clear()
        self._since_release = 0
        self._forgetting.sweep_if_due()
