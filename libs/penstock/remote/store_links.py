"""The links of a query engine to the stores. A link consists of a lease, and of a data-plane connection over which the
engine reads shards.

A lease covers regions. Each region is identified by its epoch. If a shard has moved to a store after the store has
granted a lease, the shard perhaps lacks the leased snapshot. The engine therefore requests a lease before and after it
attaches a shard. The engine reads the shard only if both leases contain the same epoch of the shard.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.errors import DataPlaneError, PenstockError
from penstock.query.planning.cost import placement as planning
from penstock.remote import PlaneLimits, connect
from penstock.remote.control_connection import Address, Connection, ControlError, lease_end
from penstock.remote.fork_join import Forking

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.core import _native as native
    from penstock.remote import Transport
    from penstock.remote.tls import PeerTls
    from penstock.wire import Placement

LEASE_MS = 10_000
_TIMEOUT_S = 1.0  # of a request; if an engine waited much longer, it would itself be considered failed
_FORK_S = 30.0  # of a fork; if a store hangs, the renewal of its lease fails earlier and interrupts the fork
_LIMITS = PlaneLimits(connect_timeout_ms=500, read_timeout_ms=1_000)
_MEND_EVERY_S = 0.1


class StoreLink(Protocol):
    """The connection to one store. Methods raise DataPlaneError if the store does not respond."""

    def lease(self, engine: str, snapshot: int, lease_ms: int) -> tuple[int, dict[int, int]]:
        """Request a lease of `lease_ms` on all snapshots from `snapshot` on. Returns the oldest readable snapshot, and
        the epoch of each of the store's shards.
        """

    def leave(self, engine: str) -> None:
        """Release the engine's lease."""

    def plane(self) -> native.Plane:
        """Open a new data-plane connection to the store's regions."""

    def close(self) -> None:
        """Close the connection."""


class LeasedGraph(Protocol):
    """The part of `StoresGraph` that `StoreLinks` uses. `snapshot`: the number of the last commit that the engine has
    applied.
    """

    snapshot: int

    def attach(self, node: int, plane: native.Plane, shards: Sequence[int] | None = None) -> None:
        """Read shards of a store over `plane` from now on. `node`: the number of the store. `shards`: the shards to
        read. None: all shards of the store.
        """

    def detach(self, node: int) -> None:
        """Stop reading the shards of a store."""

    def lease(self, snapshot: int, until: float) -> None:
        """Permit reads of snapshots from `snapshot` on. `until`: the end of the permission, as a time of
        `time.monotonic()`.
        """

    def oldest_needed(self, otherwise: int | None = None) -> int:
        """Return the oldest snapshot of all open views. If no view is open, return `otherwise`."""


class Reach(Protocol):
    """Opens links to stores."""

    def __call__(self, node: int, address: str) -> StoreLink:
        """Return a link to the store at `address`. `node`: the number by which reads refer to the store."""


class ControlLink:
    """A link to a store in another process, over a control connection and the data plane. `timeout_s`: maximum duration
    of a request in s. `tls`: None means no TLS. `rdma_unencrypted`: see `connect`.
    """

    def __init__(
        self,
        node: int,
        address: str,
        secret: bytes,
        transport: Transport,
        rdma_device: str,
        *,
        timeout_s: float = _TIMEOUT_S,
        limits: PlaneLimits = _LIMITS,
        tls: PeerTls | None = None,
        rdma_unencrypted: bool = False,
    ) -> None:
        at = Address.of(address)
        self._timeout_s, self._limits = timeout_s, limits
        self._node, self._host, self._secret = node, at.host, secret
        self._transport: Transport = transport
        self._rdma_device = rdma_device
        self._tls, self._rdma_unencrypted = tls, rdma_unencrypted
        self._connection = Connection.to(at, secret, timeout_s, tls)
        self._data_port = int(self._ask({"do": "hello"})["data_port"])

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._connection.expire_at(time.monotonic() + self._timeout_s)
        answer = self._connection.ask(message)
        if "error" in answer:
            raise ControlError(f"{self._host}: {answer['error']}", "refused")
        return answer

    def lease(self, engine: str, snapshot: int, lease_ms: int) -> tuple[int, dict[int, int]]:
        """Request a lease (see `StoreLink`). ControlError if the store refuses the lease."""
        answer = self._ask({"do": "lease", "engine": engine, "snapshot": snapshot, "lease_ms": lease_ms})
        return int(answer["snapshot"]), {int(shard): int(epoch) for shard, epoch in answer["epochs"].items()}

    def leave(self, engine: str) -> None:
        """Release the engine's lease."""
        self._ask({"do": "leave", "engine": engine})

    def plane(self) -> native.Plane:
        """Open a new data-plane connection to the store's regions."""
        reach = (self._node, self._host, self._data_port, self._secret, self._transport)
        return connect(
            *reach,
            limits=self._limits,
            rdma_device=self._rdma_device,
            tls=self._tls,
            rdma_unencrypted=self._rdma_unencrypted,
        )

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


@dataclass(slots=True)
class _Held:
    """The link to one store, the lease, and the epochs of the store's attached shards. `granted`: the oldest readable
    snapshot. `until`: the end of the lease.
    """

    node: int
    address: str
    link: StoreLink
    granted: int = 0
    until: float = 0.0
    transport: str = ""
    epochs: dict[int, int] = field(default_factory=dict)


class StoreLinks:
    """All links of one engine to stores. Methods can be called from any thread.

    The method `place` sets the placement. `mend` and `renew` then update links and leases. `clock`: a function that
    returns the time of a monotonic clock in s. With a `secret`, fork-join is possible, over TLS if `tls` is given.
    `execution` decides which scans use fork-join. Without a `secret`, all scans are in place: the engine reads the
    shards itself.
    """

    def __init__(
        self,
        engine: str,
        shards: int,
        reach: Reach,
        *,
        lease_ms: int = LEASE_MS,
        clock: Callable[[], float] = time.monotonic,
        secret: bytes | None = None,
        tls: PeerTls | None = None,
        execution: planning.Execution = "auto",
    ) -> None:
        self._engine, self._shards, self._reach = engine, shards, reach
        self.forking = None if secret is None else Forking(range(shards), self._address_of, secret, _FORK_S, tls)
        self._execution: planning.Execution = execution
        self._lease_ms, self._clock = lease_ms, clock
        self._placement: Placement | None = None
        self._lock = threading.Lock()  # protects all fields below
        self._held: dict[str, _Held] = {}
        self._nodes: dict[str, int] = {}  # by store name; the number of a store never changes
        self._until = 0.0
        self._mended = -1.0
        self._doubtful = False
        self.last_error: str | None = "no store has answered yet"

    def place(self, placement: Placement | None) -> None:
        """Set the placement. The placement determines which store serves which shards."""
        self._placement = placement

    def execution(self) -> planning.Placement | None:
        """Return the rule by which the planner places scans of the stored graph. None if fork-join is disabled.

        The planner uses the costs of the transports over which stores are read at present. While no store is connected,
        the planner assumes TCP.
        """
        if self.forking is None:
            return None
        transports = tuple(held.transport for held in self._held.copy().values() if held.transport)
        return planning.Placement(self._execution, transports or ("tcp",), self.forking.places)

    @property
    def valid(self) -> bool:
        """Whether this engine holds valid leases of all stores, by its own clock."""
        return self._clock() < self._until

    def check(self) -> None:
        """Raise DataPlaneError if the leases have expired."""
        if not self.valid:
            raise DataPlaneError(self.last_error or "the leases on the stores have run out", "timed out")

    def mend(self, graph: LeasedGraph, *, doubtful: bool) -> None:
        """Renew leases and links after a read has failed, at most once every `_MEND_EVERY_S` seconds. `doubtful`:
        whether data-plane connections are possibly broken. In this case, all shards are attached again.
        """
        self._doubtful |= doubtful
        if self._clock() >= self._mended + _MEND_EVERY_S:
            self.renew(graph)

    def renew(self, graph: LeasedGraph) -> None:
        """Renew the leases, and attach shards that have moved. Sets `last_error` to the reason why a store cannot be
        read, or to None if all stores can be read.
        """
        with self._lock:
            if self._doubtful:
                self._doubtful = False
                for held in self._held.values():
                    held.epochs.clear()  # so that every shard is attached again
            self.last_error = self._renew_all(graph)
            self._mended = self._clock()

    def _renew_all(self, graph: LeasedGraph) -> str | None:
        try:
            required = self._required_stores()
        except DataPlaneError as error:
            return str(error)
        for name in self._held.keys() - required.keys():
            self._drop(name, graph)
        last_error = None
        for name, (address, shards) in required.items():
            try:
                self._renew_one(graph, name, address, shards)
            except PenstockError as error:
                last_error = f"store {name} at {address}: {error}"
                if not isinstance(error, DataPlaneError) or error.fault != "refused":
                    self._drop(name, graph)
        if last_error is None:
            self._until = min(held.until for held in self._held.values())
            left = self._until - self._clock()
            graph.lease(max(held.granted for held in self._held.values()), time.monotonic() + left)
        return last_error

    def _required_stores(self) -> dict[str, tuple[str, set[int]]]:
        """Return the address and the shards of each store, according to the placement. Keys are the names of the
        stores.
        """
        found: dict[str, tuple[str, set[int]]] = {}
        for shard in range(self._shards):
            name, address = self._store_of(shard)
            found.setdefault(name, (address, set()))[1].add(shard)
        return found

    def _store_of(self, shard: int) -> tuple[str, str]:
        """Return the name and address of the store that serves a shard. DataPlaneError if no store serves the shard."""
        placement = self._placement
        name = None if placement is None else placement.shards.get(str(shard))
        address = None if placement is None or name is None else placement.stores.get(name)
        if name is None or address is None:
            raise DataPlaneError(f"no store has shard {shard}", "disconnected")
        return name, address

    def _address_of(self, shard: int) -> Address:
        return Address.of(self._store_of(shard)[1])

    def _renew_one(self, graph: LeasedGraph, name: str, address: str, shards: set[int]) -> None:
        held = self._held.get(name)
        if held is not None and held.address != address:
            self._drop(name, graph)
            held = None
        if held is None:
            node = self._nodes.setdefault(name, len(self._nodes))
            held = self._held[name] = _Held(node, address, self._reach(node, address))
        epochs = self._lease(graph, held)
        if any(shard not in epochs for shard in shards):
            raise DataPlaneError(f"it does not have all of the shards {sorted(shards)} yet", "refused")
        if any(epochs[shard] != held.epochs.get(shard) for shard in shards):
            plane = held.link.plane()
            held.transport = plane.transport(held.node)
            graph.attach(held.node, plane, sorted(shards))
            again = self._lease(graph, held)
            if any(again.get(shard) != epochs[shard] for shard in shards):
                raise DataPlaneError("its shards have changed meanwhile", "retired")
            held.epochs = {shard: epochs[shard] for shard in shards}

    def _lease(self, graph: LeasedGraph, held: _Held) -> dict[int, int]:
        """Request a lease that covers all open views and all future reads of this engine. Returns the epochs of the
        store's shards.

        After a restart, a store perhaps no longer has the snapshot of an open view. The lease then covers future reads
        only, and reads of older views fail.
        """
        began = self._clock()
        snapshot = graph.snapshot
        needed = min(snapshot, graph.oldest_needed(snapshot))
        try:
            held.granted, epochs = held.link.lease(self._engine, needed, self._lease_ms)
        except DataPlaneError as error:
            if needed == snapshot or error.fault != "refused":
                raise
            held.granted, epochs = held.link.lease(self._engine, snapshot, self._lease_ms)
        held.until = lease_end(began, self._lease_ms / 1000)
        return epochs

    def _drop(self, name: str, graph: LeasedGraph) -> None:
        held = self._held.pop(name, None)
        if held is not None:
            held.link.close()
            graph.detach(held.node)
            if self.forking is not None:
                self.forking.interrupt(Address.of(held.address))

    def close(self) -> None:
        """Release the leases and close the links. If a store does not respond, its lease expires."""
        with self._lock:
            for held in self._held.values():
                with contextlib.suppress(DataPlaneError):
                    held.link.leave(self._engine)
                held.link.close()
            self._held.clear()
            self._until = 0.0
        if self.forking is not None:
            self.forking.close()
