"""The store's side of fork-join: the execution of query engines' plan fragments over a shard."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from cachetools import LRUCache

from penstock.core import _native as native
from penstock.errors import DataError
from penstock.remote.fork_join import rows_from_arrow, rows_to_arrow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_PLAN_BYTES = 1 << 18
MAX_PLANS = 256
MAX_STEPS = 64
MAX_SECONDS = 600.0
MAX_MEMORY = 4 << 30


class Fragments:
    """Compiles and executes plan fragments (docs/plan-format.md). A fragment is a chain of scans that starts from a
    seed. `run` can be called from any thread.
    """

    def __init__(self, store: native.Store) -> None:
        self._store = store
        self._terms = native.Dictionary()  # fragments create no terms
        self._plans: LRUCache[str, native.Plan] = LRUCache(MAX_PLANS)
        self._caching = threading.Lock()

    def run(self, asked: dict[str, Any], excluded: NDArray[np.uint32], rows: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Execute a fragment, and return the extended rows. `rows`: an Arrow stream (`rows_from_arrow`). `excluded`:
        commits that the view excludes. `asked`: a dict with the fields `plan` (the fragment), `snapshot`, `timeout_s`
        (s) and `memory` (bytes). A time or memory of 0 stands for the maximum of this module.

        DataError if the fragment is invalid. StorageError if the store does not have the snapshot yet, or no longer has
        the snapshot. LimitError if time or memory is exhausted.
        """
        plan, seed = self._plan(str(asked["plan"]))
        slots, columns = rows_from_arrow(rows)
        if slots != seed:
            raise DataError(f"a fragment starts from slots {seed}, not {slots}")
        view = self._store.view_part(int(asked["snapshot"]), excluded.tolist())
        seconds, memory = float(asked["timeout_s"]), int(asked["memory"])
        result = native.execute(
            plan,
            self._store,
            self._terms,
            [view],
            columns,
            timeout_s=min(seconds, MAX_SECONDS) if seconds > 0 else MAX_SECONDS,
            memory_bytes=min(memory, MAX_MEMORY) if memory > 0 else MAX_MEMORY,
        )
        return rows_to_arrow(result.slots, [result.column(i) for i in range(len(result.slots))])

    def _plan(self, text: str) -> tuple[native.Plan, list[int]]:
        if len(text) > MAX_PLAN_BYTES:
            raise DataError("a fragment is too large")
        spec = json.loads(text)
        with self._caching:
            plan = self._plans.get(text)
            if plan is None:
                _check(spec)
                plan = self._plans[text] = native.Plan(spec)
        return plan, [int(slot) for slot in spec["seed"]]


def _check(spec: dict[str, Any]) -> None:
    node, steps = spec["root"], 0
    while node["op"] in ("project", "scan"):
        node, steps = node["in"], steps + 1
        if steps > MAX_STEPS:
            break
    if node["op"] != "seed" or spec["subplans"]:
        raise DataError("a fragment is a chain of scans from a seed")
