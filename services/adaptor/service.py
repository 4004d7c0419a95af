"""The process of the plain adaptor."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from penstock.acls import Principal
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClientSettings, GroupSettings, topics_of
from penstock.runtime.metrics import Tally
from penstock.runtime.registry_settings import RegistrySettings
from penstock.services.adaptor.adaptor import Adaptor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.runtime.metrics import Metrics


class AdaptorSettings(ClientSettings, GroupSettings, RegistrySettings):
    """Settings of an adaptor."""

    poll_ms: int = Field(10, ge=1, le=10_000, description="maximum time that a step waits for input")


class Counting(Protocol):
    """Counters of an adaptor. Threads other than the adaptor's can read the counters."""

    events: int
    tuples: int
    dead: int
    discarded: int


def gauges(adaptor: Counting, lag: Callable[[], Mapping[str, int]], metrics: Metrics) -> Callable[[], None]:
    """Return the function that updates an adaptor's metrics."""
    events, tuples, dead = Tally(metrics.events), Tally(metrics.tuples), Tally(metrics.dead_letters)
    discarded = Tally(metrics.discarded)

    def observe() -> None:
        events.reach(adaptor.events)
        tuples.reach(adaptor.tuples)
        dead.reach(adaptor.dead)
        discarded.reach(adaptor.discarded)
        for topic, records in lag().items():
            metrics.lag.labels(topic).set(records)

    return observe


def open_adaptor(context: Context[AdaptorSettings]) -> Adaptor:
    """Open the adaptor as a member of the adaptors' group."""
    topics_of(context, Principal.adaptor)
    terms = context.settings.terms()
    registry = context.settings.registry()
    adaptor = Adaptor(context.log, context.names, terms, context.settings.group, registry=registry, transient=terms)
    context.observers.append(gauges(adaptor.adapting, adaptor.lag, context.metrics))
    return adaptor


def main() -> int:
    """Run the service."""
    return run("adaptor", AdaptorSettings, open_adaptor)


if __name__ == "__main__":
    sys.exit(main())
