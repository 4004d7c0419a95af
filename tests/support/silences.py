"""The times when results of a cluster's queries arrive, and the longest times without results."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from itertools import pairwise
from threading import Event, Thread
from typing import TYPE_CHECKING

from penstock.log import END, Partition
from support.cluster_load import EVENT_MS

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Protocol, Self

    from penstock.log import Log
    from penstock.log.topics import TopicNames
    from support.cluster_load import Load

    class Queries(Protocol):
        """A load with queries, by name."""

        @property
        def queries(self) -> Collection[str]: ...

        @property
        def names(self) -> TopicNames: ...

        @property
        def log(self) -> Log: ...


_POLL_S = 0.02


class Arrivals:
    """Reads committed results as they come, in a thread. `moments`: for each query, the times in s when its results
    came.
    """

    def __init__(self, load: Queries) -> None:
        self._queries = load.queries
        self.moments: dict[str, list[float]] = defaultdict(list, {query: [] for query in load.queries})
        topic = load.names.results
        self._reader = load.log.reader({Partition(topic, i): END for i in range(load.log.topics()[topic])})
        self._stop = Event()
        self._thread = Thread(target=self._follow, daemon=True)

    def _follow(self) -> None:
        while not self._stop.is_set():
            messages, now = self._reader.poll(1000, _POLL_S), time.monotonic()
            for message in messages:
                self.moments[json.loads(message.value or b"")["query"]].append(now)
        self._reader.close()

    def silence(self, begin: float, end: float, step_s: float) -> float:
        """Return by how many seconds the longest gap between two results of a query exceeds its step, between two
        moments.
        """
        return max(self._gap(self.moments[query], begin, end) for query in self._queries) - step_s

    @staticmethod
    def _gap(moments: list[float], begin: float, end: float) -> float:
        within = [begin, *(moment for moment in moments if begin < moment < end), end]
        return max(later - earlier for earlier, later in pairwise(within))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


class Pushing:
    """Produces a load's events in real time, in a thread."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._stop = Event()
        self._thread = Thread(target=self._push, daemon=True)

    def _push(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            self._load.push(1)
            due += EVENT_MS / 1000
            time.sleep(max(due - time.monotonic(), 0.0))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
