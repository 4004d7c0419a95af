"""The coordinator's process: settings, HTTP routes and metrics."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.acls import Principal
from penstock.engine.limits import MAX_CATCH_UP, MOST_CATCH_UP
from penstock.errors import NotActiveError
from penstock.mapping.encodings.schema_registration import SchemaRegistration
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClientSettings, topics_of
from penstock.runtime.metrics import Tally
from penstock.runtime.registry_settings import RegistrySettings
from penstock.services.coordinator.active_state import Forgetting
from penstock.services.coordinator.coordinator import Coordinator
from penstock.services.coordinator.fair_lock import FairLock
from penstock.services.coordinator.http_routes import routes

if TYPE_CHECKING:
    from penstock.runtime.metrics import Metrics


class CoordinatorSettings(ClientSettings, RegistrySettings):
    """Settings of a coordinator."""

    discard_after_s: float = Field(
        60.0,
        ge=0,
        description="adaptors drop timing predicates that no query has read for this long (ADR 45); 0 = drop nothing",
    )
    max_catch_up: int = Field(
        MAX_CATCH_UP,
        ge=1,
        le=MOST_CATCH_UP,
        description="maximum number of instants of a query that one advance of a stream may make due, if the"
        " registration sets none",
    )
    forget_after_s: float = Field(
        0.0,
        ge=0,
        description="terms that only timing tuples use are removed one to two periods of this length after the last"
        " window has passed them (ADR 50); needs the same setting on query engines, and `terms_in_memory` on"
        " dictionaries; 0 = no term is removed",
    )
    http_engines_ca: Path | None = Field(
        None,
        description="CA (PEM) of the HTTPS certificates of query engines, which evaluate updates; none = they have the"
        " certificate of the coordinator, or one of a CA of the system if the coordinator has none",
    )


class LockedCoordinator:
    """A coordinator whose steps do not run at the same time as HTTP requests."""

    def __init__(self, coordinator: Coordinator, lock: FairLock) -> None:
        self._coordinator = coordinator
        self._lock = lock

    def step(self, timeout_s: float) -> bool:
        """Perform one step under the lock. The lock is fair, so waiting requests are served between two steps."""
        with self._lock:
            return self._coordinator.step(timeout_s)

    def close(self) -> None:
        """Leave the election and close the log clients."""
        self._coordinator.close()


def open_coordinator(context: Context[CoordinatorSettings]) -> LockedCoordinator:
    """Open the coordinator, which is on standby until its election."""
    settings, lock = context.settings, FairLock()
    terms = settings.terms()
    coordinator = Coordinator(
        context.log,
        topics_of(context, Principal.coordinator),
        settings.instance,
        terms,
        context.clock,
        _discard_after_ms(settings),
        settings.max_catch_up,
        schemas=SchemaRegistration(settings.registry()),
        forgetting=Forgetting(terms, after_ms) if (after_ms := round(settings.forget_after_s * 1000)) else None,
    )
    http = settings.http_certificate, settings.http_engines_ca
    context.routes.extend(routes(coordinator, lock, settings.locations(), *http))
    context.listening.append(coordinator.answer_at)
    ignored = Tally(context.metrics.ignored)
    context.observers.append(lambda: ignored.reach(coordinator.ignored))
    context.observers.append(lambda: _observe(coordinator, context.metrics))
    return LockedCoordinator(coordinator, lock)


def _observe(coordinator: Coordinator, metrics: Metrics) -> None:
    try:
        queries, streams = len(coordinator.queries), len(coordinator.streams)
    except NotActiveError:
        metrics.active.set(0)
        return
    metrics.active.set(1)
    metrics.queries.set(queries)
    metrics.streams.set(streams)


def _discard_after_ms(settings: CoordinatorSettings) -> int | None:
    return round(settings.discard_after_s * 1000) or None


def main() -> int:
    """Run the service."""
    return run("coordinator", CoordinatorSettings, open_coordinator)


if __name__ == "__main__":
    sys.exit(main())
