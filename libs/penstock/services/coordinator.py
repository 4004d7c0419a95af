"""The coordinator's process: its verbs over HTTP, beside health and metrics."""

from __future__ import annotations

import sys
from threading import Lock

from penstock.cluster.coordinator import Coordinator
from penstock.cluster.rpc import FlightTerms
from penstock.http.coordinator import routes
from penstock.runtime import Context, run
from penstock.services.cluster_settings import ClientSettings, topics_of


class LockedCoordinator:
    """A coordinator whose steps and verbs keep out of each other's way."""

    def __init__(self, coordinator: Coordinator, lock: Lock) -> None:
        self._coordinator = coordinator
        self._lock = lock

    def step(self, timeout_s: float) -> bool:
        """Step; the wait is outside of verbs' way as far as the lock is free between steps."""
        with self._lock:
            return self._coordinator.step(timeout_s)

    def close(self) -> None:
        """Step back for good."""
        self._coordinator.close()


def open_coordinator(context: Context[ClientSettings]) -> LockedCoordinator:
    """Open the core: on standby until it is elected."""
    settings, lock = context.settings, Lock()
    terms = FlightTerms(settings.dictionaries.split(","))
    coordinator = Coordinator(context.log, topics_of(context), settings.instance, terms, context.clock)
    context.routes.extend(routes(coordinator, lock))
    context.observers.append(lambda: context.metrics.active.set(coordinator.active))
    return LockedCoordinator(coordinator, lock)


def main() -> int:
    """Run the service."""
    return run("coordinator", ClientSettings, open_coordinator)


if __name__ == "__main__":
    sys.exit(main())
