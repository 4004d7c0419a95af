"""The plain adaptor's process: users' events to tuples of term ids."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.cluster.rpc import FlightTerms
from penstock.ingest.adaptor import Adaptor
from penstock.ingest.dispatcher import ADAPTOR_GROUP
from penstock.runtime import Context, ServiceSettings, run
from penstock.runtime.metrics import Tally

if TYPE_CHECKING:
    from penstock.runtime.metrics import Metrics


class AdaptorSettings(ServiceSettings):
    """Settings of an adaptor."""

    adaptor_group: str = Field(ADAPTOR_GROUP, min_length=1, description="consumer group of the adaptors")
    dictionaries: str = Field(min_length=1, description="where dictionaries answer: grpc://host:port, by commas")
    poll_ms: int = Field(10, ge=1, le=10_000, description="how long a step waits for input")


class AdaptorGauges:
    """What an adaptor tells about itself. Asked from another thread: reads only."""

    def __init__(self, adaptor: Adaptor, metrics: Metrics) -> None:
        self._adaptor, self._metrics = adaptor, metrics
        self._events, self._tuples = Tally(metrics.events), Tally(metrics.tuples)
        self._dead = Tally(metrics.dead_letters)

    def observe(self) -> None:
        """Bring the metrics up to date."""
        self._events.reach(self._adaptor.adapting.events)
        self._tuples.reach(self._adaptor.adapting.tuples)
        self._dead.reach(self._adaptor.adapting.dead)
        for topic, records in self._adaptor.lag().items():
            self._metrics.lag.labels(topic).set(records)


def open_adaptor(context: Context[AdaptorSettings]) -> Adaptor:
    """Open the core: one member of the adaptors' group."""
    terms = FlightTerms(context.settings.dictionaries.split(","))
    adaptor = Adaptor(context.log, context.names, terms, context.settings.adaptor_group)
    context.observers.append(AdaptorGauges(adaptor, context.metrics).observe)
    return adaptor


def main() -> int:
    """Run the service."""
    return run("adaptor", AdaptorSettings, open_adaptor)


if __name__ == "__main__":
    sys.exit(main())
