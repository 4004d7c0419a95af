"""An embedded engine whose stored graph is in the shards of stores, which it reads as a cluster's query engine does.

Tests and benchmarks get reads, leases and fork-join over real stores without a log, a dictionary service or a
coordinator. In a cluster, stores learn from the log; here the engine sends them numbered steps (`Feed`). A store that
comes back empty gets all steps again.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import penstock
from penstock.core import _native as native
from penstock.engine.engine_core import EngineCore
from penstock.engine.oneshot.one_shot import OneShot
from penstock.engine.oneshot.updating import UpdateRun
from penstock.engine.runtime import Runtime
from penstock.errors import DataPlaneError, UnavailableError
from penstock.query.resolve import as_update
from penstock.query.supported_updates import is_data
from penstock.remote import PlaneLimits
from penstock.remote.control_connection import Connection, ControlError
from penstock.remote.lease_keeper import Keeper
from penstock.remote.store_links import LEASE_MS, ControlLink, StoreLinks
from penstock.remote.stores_graph import StoresGraph
from penstock.replication.absorption import Absorption, batch_labels
from penstock.updates.evaluation import SnapshotGraph
from penstock.wire import Placement
from support.store_host import RDMA_DEVICES, SECRET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.core._native import Ids
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.intake.graph_change import GraphChange, UpdateReport
    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.stored_graph import StoredGraph
    from penstock.query.ir import Update
    from penstock.query.planning.cost.placement import Execution
    from penstock.remote import Transport
    from penstock.remote.control_connection import Address, Columns
    from support.store_processes import StoreProcesses

_RETRY_S = 0.02
_TIMEOUT_S = 60.0  # long, for machines are busy, and soft-RoCE runs in an emulated machine
_LIMITS = PlaneLimits(20_000, 60_000)
_EMULATED_LEASE_MS = 60_000


class Feed:
    """Sends every step to every store. When a step is sent, each store lacks at most the step before it."""

    def __init__(self, stores: StoreProcesses, patience_s: float) -> None:
        self._stores = stores
        self._patience_s = patience_s
        self._steps: list[tuple[dict[str, Any], Columns]] = []
        self._connections: dict[Address, tuple[Connection, int]] = {}  # with the number of steps sent

    def send(self, message: dict[str, Any], columns: Columns) -> None:
        """Add a step."""
        self._steps.append(({"do": "step", "number": len(self._steps), **message}, columns))
        for process in self._stores.processes:
            self._bring_up(process.address)

    def mend(self) -> None:
        """Connect again, and send the steps that restarted stores lack."""
        for address, (connection, _) in list(self._connections.items()):
            connection.close()
            del self._connections[address]
            self._bring_up(address)

    def _bring_up(self, address: Address) -> None:
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                connection, sent = self._connections.pop(address, None) or self._connected(address)
                for step in self._steps[sent:]:
                    if sent:
                        self._checked(connection.receive()[0])
                    connection.send(*step)
                    sent += 1
            except ControlError:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_RETRY_S)
            else:
                self._connections[address] = connection, sent
                return

    def _connected(self, address: Address) -> tuple[Connection, int]:
        """Return a new connection to a store, and how many steps the store has. One answer is due, as after a step."""
        connection = Connection.to(address, SECRET, self._patience_s)
        applied = self._checked(connection.ask({"do": "hello"}))["step"]
        if applied:
            connection.send({"do": "hello"})
        return connection, applied

    @staticmethod
    def _checked(answer: dict[str, Any]) -> dict[str, Any]:
        assert "error" not in answer, answer
        return answer

    def close(self) -> None:
        for connection, _ in self._connections.values():
            connection.close()


class FedGraph(StoresGraph):
    """The stored graph, in stores that this process feeds. Closed batches are sent to them before anything is read."""

    def __init__(self, links: StoreLinks, shards: int, feed: Feed, wait_s: float) -> None:
        super().__init__(shards, links, wait_s)
        self.feed = feed
        self.fed: dict[int, FedStream] = {}
        self.released: dict[int, int] = {}  # by stream: no view will ask for an earlier batch

    def send(self, kind: str, columns: Columns, **fields: Any) -> None:
        self.feed.send({"kind": kind, "released": list(self.released.items()), **fields}, columns)

    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        self.drain()
        if not len(s):
            return self.snapshot
        super().commit(s, p, o, g, stream, batch)
        self.send("insert", {"s": s, "p": p, "o": o, "g": g})
        return self.snapshot

    def change(
        self,
        removed: tuple[Ids, Ids, Ids, Ids],
        added: tuple[Ids, Ids, Ids, Ids],
        stream: int = 0,
        batch: int = 0,
    ) -> tuple[int, int, int]:
        self.drain()
        counted = super().change(removed, added, stream, batch)
        columns = {
            name + kind: c
            for kind, quads in (("-", removed), ("+", added))
            for name, c in zip("spog", quads, strict=True)
        }
        self.send("change", columns)
        return counted

    def number(self, absorption: Absorption, predicates: Ids) -> None:
        """Number the labels of tuples that have arrived, here and in the stores. (A cluster does this for each batch.)"""
        batch_labels(self, absorption, predicates)
        known, self._labels = getattr(self, "_labels", 0), len(self.labels_only.label_pairs()[0])
        if self._labels > known:
            graphs, names = self.labels_only.label_pairs()
            self.send("labels", {"graphs": graphs[known:], "predicates": names[known:]})

    def stream(
        self, declaration: Declaration, number: int, dictionary: native.Dictionary, iri_id: Callable[[str], int]
    ) -> FedStream:
        absorption = super().stream(declaration, number, dictionary, iri_id)._absorption  # type: ignore[attr-defined]
        named = [*(absorption.timing or ()), *([absorption.graph] if absorption.graph else [])]
        dictionary.keep(np.array(named, np.uint64))
        asked = {"stream": number, "timing": absorption.timing, "graph": absorption.graph}
        self.send("declare", {}, declaration=declaration.as_json(), **asked)
        self.fed[number] = FedStream(self, declaration, number, dictionary, absorption)
        return self.fed[number]

    def release(self, stream: int, batch: int) -> None:
        super().release(stream, batch)
        self.released[stream] = max(batch, self.released.get(stream, batch))

    def drain(self) -> None:
        """Send the batches that have closed."""
        for stream in self.fed.values():
            stream.drain()

    def _view(self, bounds: Sequence[tuple[int, int]], at: int | None = None) -> native.Source:
        self.drain()
        try:
            return super()._view(bounds, at)
        except DataPlaneError:
            self.feed.mend()
            raise

    def latest(self) -> int:
        self.drain()
        return super().latest()


class FedStream(native.Stream):
    """A stream whose windows are in this process. The stores get the stored part of each closed batch."""

    def __init__(
        self,
        graph: FedGraph,
        declaration: Declaration,
        number: int,
        dictionary: native.Dictionary,
        absorption: Absorption,
    ) -> None:
        memory = (declaration.slice_mb or 0) << 20
        super().__init__(
            graph.labels_only,
            dictionary,
            number=number,
            batch_ms=declaration.batch_ms,
            timing=None,
            memory_bytes=memory,
        )
        self._graph, self._dictionary, self._absorption = graph, dictionary, absorption
        self._iri, self._batch_ms = declaration.iri, declaration.batch_ms
        self._open: dict[int, list[tuple[np.ndarray, ...]]] = defaultdict(list)
        self._stored = 0

    def take(self, *_: Any) -> None:  # type: ignore[override]
        """Do nothing: rows come by `append`."""
        return

    def append(self, ts: np.ndarray, s: Ids, p: Ids, o: Ids) -> None:
        self._graph.number(self._absorption, p)  # first: the native stream numbers labels in the order of arrival
        super().append(ts, s, p, o)
        batches = -(-ts // self._batch_ms) - 1  # (k Δ, (k + 1) Δ]
        for batch in np.unique(batches).tolist():
            rows = batches == batch
            self._open[batch].append((ts[rows], s[rows], p[rows], o[rows]))

    def drain(self) -> None:
        closed = self.closed()
        for batch in sorted(k for k in self._open if closed is not None and k <= closed):
            ts, s, p, o = (np.concatenate(columns) for columns in zip(*self._open.pop(batch), strict=True))
            stored = self._absorption.stored(p)
            self._dictionary.keep(s[stored])
            self._dictionary.keep(o[stored])
            self._stored += int(stored.sum())
            self._graph.snapshot += bool(stored.any())
            end_ms = (batch + 1) * self._batch_ms
            self._graph.send("batch", {"ts": ts, "s": s, "p": p, "o": o}, iri=self._iri, end_ms=end_ms)

    def stored_tuples(self) -> int:
        return self._stored


class _WaitingRuntime(Runtime):
    """Postpones evaluations whose stores do not answer, as a cluster's engine does."""

    waiting: Callable[[], Callable[[UnavailableError], None]]

    def progress(self, moved: Iterable[LiveStream]) -> None:
        wait = self.waiting()
        while True:
            try:
                return super().progress(moved)
            except UnavailableError as error:
                wait(error)
                moved = ()


class EngineOverStores(penstock.Engine):
    """An engine with the embedded engine's interface. `transport`: of reads, for all stores or for each. `patience_s`:
    how long it waits for stores that restart.
    """

    def __init__(
        self,
        stores: StoreProcesses,
        *,
        transport: Transport | Sequence[Transport] = "auto",
        execution: Execution = "auto",
        lease_ms: int = LEASE_MS,
        patience_s: float = 30.0,
    ) -> None:
        super().__init__()
        whole = self._runtime.core
        count = len(stores.processes)
        transports = [transport] * count if isinstance(transport, str) else transport
        by_address: dict[str, Any] = {str(p.address): t for p, t in zip(stores.processes, transports, strict=True)}

        def reach(node: int, address: str) -> ControlLink:
            asked = node, address, SECRET, by_address[address], RDMA_DEVICES[-1]
            return ControlLink(*asked, timeout_s=_TIMEOUT_S, limits=_LIMITS)

        lease_ms = _EMULATED_LEASE_MS if "rdma" in transports else lease_ms
        self.links = StoreLinks("engine", stores.shards, reach, lease_ms=lease_ms, secret=SECRET, execution=execution)
        owners = {str(shard): str(n) for n, process in enumerate(stores.processes) for shard in process.own}
        self.links.place(Placement(1, owners, {}, {str(n): str(p.address) for n, p in enumerate(stores.processes)}))
        self._feed = Feed(stores, patience_s)
        self.graph = FedGraph(self.links, stores.shards, self._feed, patience_s)
        self.links.renew(self.graph)
        assert self.links.last_error is None, self.links.last_error
        self.transports = {held.transport for held in self.links._held.values()}
        core = EngineCore(self.graph, whole.dictionary, whole.limits, whole.clock, whole.random, whole.foreign)
        self._patience_s = patience_s
        self._runtime = _WaitingRuntime(core)
        self._runtime.waiting = self._waiting
        self._one_shot = OneShot(core, self._runtime.streams, self._texts)
        self.keeper = Keeper(self.graph, lease_ms)

    def _waiting(self) -> Callable[[UnavailableError], None]:
        """Return a function that waits for restarting stores, and raises its argument after `patience_s`."""
        began: list[float] = []

        def wait(error: UnavailableError) -> None:
            began.append(time.monotonic())
            if began[-1] - began[0] > self._patience_s:
                raise error
            time.sleep(_RETRY_S)
            self.graph.feed.mend()
            self.links.renew(self.graph)

        return wait

    def query(self, *asked: Any, **options: Any) -> Any:
        wait = self._waiting()
        while True:
            try:
                return super().query(*asked, **options)
            except UnavailableError as error:
                wait(error)

    def update(self, text: str, base: str | None = None, **graphs: Any) -> UpdateReport:
        """Execute an update. As in a cluster, its evaluation has edge labels of its own."""
        update = as_update(self._texts.parse(text, base))
        if is_data(update):
            return super().update(text, base, **graphs)
        assert not graphs
        wait = self._waiting()
        with self._change() as runtime:
            while True:
                try:
                    return self._evaluated(runtime.core, update).commit(runtime.core)
                except (DataPlaneError, UnavailableError) as error:
                    wait(UnavailableError(str(error)))

    def _evaluated(self, core: EngineCore, update: Update) -> GraphChange:
        graph = SnapshotGraph(core.store)
        own = replace(core, store=cast("StoredGraph", graph))
        try:
            return UpdateRun(own, OneShot(own, self._runtime.streams, self._texts), update).evaluate()
        finally:
            graph.close()

    def close(self) -> None:
        super().close()
        self.keeper.close()
        self.links.close()
        self._feed.close()
        self.graph.fed.clear()  # Python's garbage collector does not find cycles through native objects
