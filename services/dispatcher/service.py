"""The dispatcher's process. One instance is active. A new instance fences the previous instance, which then ends."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.acls import Principal
from penstock.event_time.watermark import NEVER
from penstock.ingest.event_adapter import MAX_TUPLES
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClusterSettings, GroupSettings, topics_of
from penstock.runtime.metrics import Tally
from penstock.services.dispatcher.dispatcher import Dispatcher
from penstock.services.dispatcher.stream_time import MAX_BATCH_TUPLES

if TYPE_CHECKING:
    from penstock.runtime.metrics import Metrics


class DispatcherSettings(ClusterSettings, GroupSettings):
    """Settings of the dispatcher."""

    max_batch_tuples: int = Field(
        MAX_BATCH_TUPLES,
        ge=MAX_TUPLES,
        description="maximum number of tuples of an open batch; further events become dead letters. A batch is one"
        " transaction, and one commit in each store (4 million tuples: some 10 s, 150 MB of log)",
    )
    poll_ms: int = Field(10, ge=1, le=10_000, description="maximum time that a step waits for input")


class DispatcherGauges:
    """The metrics of a dispatcher. Threads other than the dispatcher's can call `observe`."""

    def __init__(self, dispatcher: Dispatcher, metrics: Metrics, context: Context[DispatcherSettings]) -> None:
        self._dispatcher, self._metrics, self._clock = dispatcher, metrics, context.clock
        self._events, self._duplicates = Tally(metrics.events), Tally(metrics.duplicates)
        self._far_advances = Tally(metrics.far_advances)
        self._late, self._dead = Tally(metrics.late), Tally(metrics.dead_letters)
        self._batches, self._transactions = Tally(metrics.batches), Tally(metrics.transactions)

    def observe(self) -> None:
        """Update the metrics."""
        dispatcher, metrics, now_ms = self._dispatcher, self._metrics, self._clock.now_ms()
        streams = list(dispatcher.streams.items())
        taken = dispatcher.tallies()
        self._events.reach(taken.events)
        self._duplicates.reach(taken.duplicates)
        self._far_advances.reach(taken.far_advances)
        self._late.reach(dispatcher.late)
        self._dead.reach(dispatcher.dead)
        self._batches.reach(dispatcher.batches)
        self._transactions.reach(dispatcher.transactions)
        for iri, stream in streams:
            metrics.memory.labels(f"open batches {iri}").set(stream.open.bytes)
            if stream.watermark_ms != NEVER:
                metrics.watermark.labels(iri).set(stream.watermark_ms)
            if stream.closed is not None:
                end_ms = (stream.closed + 1) * stream.declaration.batch_ms
                metrics.batch_age.labels(iri).set((now_ms - end_ms) / 1000)
        for topic, records in dispatcher.lag().items():
            metrics.lag.labels(topic).set(records)


def open_dispatcher(context: Context[DispatcherSettings]) -> Dispatcher:
    """Open the dispatcher. This instance is then active, and the previous instance is fenced."""
    settings = context.settings
    topics_of(context, Principal.dispatcher)
    dispatcher = Dispatcher(
        context.log,
        context.names,
        settings.shards,
        context.clock,
        settings.group,
        max_batch_tuples=settings.max_batch_tuples,
    )
    context.observers.append(DispatcherGauges(dispatcher, context.metrics, context).observe)
    context.metrics.active.set(1)
    return dispatcher


def main() -> int:
    """Run the service."""
    return run("dispatcher", DispatcherSettings, open_dispatcher)


if __name__ == "__main__":
    sys.exit(main())
