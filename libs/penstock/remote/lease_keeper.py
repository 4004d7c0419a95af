"""Renewal of leases by a thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from penstock.remote.store_links import LEASE_MS

if TYPE_CHECKING:
    from penstock.remote.stores_graph import StoresGraph


class Keeper:
    """A thread that renews the leases of an engine. The leases therefore stay valid while the engine's loop is busy.
    The thread renews each lease four times per lease duration (`lease_ms`).
    """

    def __init__(self, graph: StoresGraph, lease_ms: int = LEASE_MS) -> None:
        self._graph, self._every_s = graph, lease_ms / 4000
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="penstock-leases")
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self._graph.links.renew(self._graph)

    def close(self) -> None:
        """Stop the thread."""
        self._stop.set()
        self._thread.join()
