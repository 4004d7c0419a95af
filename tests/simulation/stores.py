"""Stores of a simulated cluster: real regions in shared memory, leases by the virtual clock, crashes between any two shards.

Engines read them in place, or take steps to them by fork-join: then each part of a fork is answered in this process, and
engines and stores may end, or be held up, between any two parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import DataPlaneError, StorageError
from penstock.log.faults import Point
from penstock.remote import Server, connect
from penstock.remote.control_connection import Address, ControlError
from penstock.remote.fork_join import Forking
from penstock.remote.store_links import StoreLinks
from penstock.services.store import shard_store
from penstock.services.store.leases import Leases, LeaseServer
from penstock.services.store.shard_checkpoints import ShardCheckpoints
from penstock.services.store.shard_store import ShardStore
from penstock.services.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from penstock.core import _native as native
    from penstock.remote.control_connection import Columns
    from penstock.remote.stores_graph import StoresGraph
    from simulation.cluster import Cluster, Process

SECRET = b"a secret of sixteen bytes"
LEASE_MS = 4_000
_HOST = "127.0.0.1"
_FOR_EVER_S = 1e6
shard_store._RESERVE_BYTES = 1 << 30  # of addresses: dead stores, of which a seed can have a thousand, keep theirs


class SimulatedStore(Store):
    """A store whose process may end, or be held up, between any two effects on its shards."""

    def __init__(self, cluster: Cluster, name: str, checkpoints: ShardCheckpoints | None) -> None:
        self.server = Server(_HOST, 0, SECRET, transport="tcp")
        effect = self._effect = lambda: cluster.faults.at(Point.COMMITTED, name)
        self.shard_type = _shards_with(effect)
        leases = Leases(lambda: cluster.clock.now_ms() / 1000)
        regions = cluster.folder / "regions" / name
        log, topics, terms, clock = cluster.log, cluster.topics, cluster.terms, cluster.clock
        where = Address(_HOST, self.server.port)
        super().__init__(log, topics, name, terms, clock, self.server, regions, checkpoints, leases, where)

    def answer(self, message: dict[str, Any], columns: Columns) -> tuple[dict[str, Any], Columns]:
        """What the server of its leases would send back."""
        return _Answering(self.leases)._answer(message, columns)

    def end(self) -> None:
        """The process is gone: its locks go with it, its regions stay where somebody has mapped them."""
        if self._checkpoints is not None:
            self._checkpoints.close()


def _shards_with(effect: Callable[[], None]) -> type[ShardStore]:
    class Shard(ShardStore):
        def apply(self, *given: Any) -> None:
            effect()
            super().apply(*given)

        def change(self, *given: Any) -> None:
            effect()
            super().change(*given)

        def close(self, *given: Any) -> None:
            effect()
            super().close(*given)

    return Shard


def store_starter(cluster: Cluster, i: int) -> Callable[[], SimulatedStore]:
    """Stores that keep checkpoints do so where the others find them, or not."""
    root = cluster.folder / cluster.rng.choice(["shards", "shards", f"shards-{i}"])
    keeps = cluster.rng.random() < 0.7

    def start() -> SimulatedStore:
        checkpoints = ShardCheckpoints(root, f"s{i}", cluster.topics.shards) if keeps else None
        return SimulatedStore(cluster, f"s{i}", checkpoints)

    return start


class _Answering(LeaseServer):
    """A server without a socket."""

    def __init__(self, leases: Leases) -> None:
        self._served = leases


class Reached:
    """A store as somebody has reached it who holds a connection to it."""

    def __init__(self, cluster: Cluster, address: str) -> None:
        self._cluster = cluster
        self._process = self._find(address)
        self._store = self._process.service

    def _find(self, address: str) -> Process:
        for process in self._cluster.stores:
            if process.service is not None and process.service.server.port == int(address.rpartition(":")[2]):
                return process
        raise ControlError(f"nobody listens at {address}")

    def check(self) -> None:
        """ControlError where it does not answer."""
        if self._process.service is not self._store:
            raise ControlError("the store has died")
        if self._process.until_ms > self._cluster.clock.now_ms():
            raise ControlError("the store does not answer", "timed out")

    def close(self) -> None:
        """Hang up."""


class Link(Reached):
    """A store's leases asked for in this process; its regions are mapped as any engine would."""

    def __init__(self, cluster: Cluster, node: int, address: str) -> None:
        super().__init__(cluster, address)
        self._node = node

    def lease(self, engine: str, snapshot: int, lease_ms: int) -> tuple[int, dict[int, int]]:
        self.check()
        try:
            granted: tuple[int, dict[int, int]] = self._store.leases.grant(engine, snapshot, lease_ms)
        except StorageError as error:
            raise DataPlaneError(str(error), "refused") from error
        return granted

    def leave(self, engine: str) -> None:
        self.check()
        self._store.leases.leave(engine)

    def plane(self) -> native.Plane:
        return connect(self._node, _HOST, self._store.server.port, SECRET, "shm")


class ForkConnection(Reached):
    """A control connection by which the parts of forks go to a store."""

    def __init__(self, cluster: Cluster, engine: str, address: str) -> None:
        super().__init__(cluster, address)
        self._effect = lambda: cluster.faults.at(Point.COMMITTED, engine)
        self._asked: tuple[dict[str, Any], Columns] = {}, {}

    def send(self, message: dict[str, Any], columns: Columns) -> None:
        self._effect()
        self.check()
        self._asked = message, columns

    def receive(self) -> tuple[dict[str, Any], Columns]:
        self._effect()
        self.check()
        self._cluster.forks += 1
        answer: tuple[dict[str, Any], Columns] = self._store.answer(*self._asked)
        return answer

    def expire_at(self, moment: float) -> None:
        """Who does not answer is found out at once."""

    def interrupt(self) -> None:
        """Nobody waits."""


class SimulatedForking(Forking):
    """Nobody is waited for: the engine comes back later."""

    def __init__(self, cluster: Cluster, engine: str, address_of: Callable[[int], Address]) -> None:
        super().__init__(range(cluster.topics.shards), address_of, SECRET, _FOR_EVER_S)
        self._reach = lambda address: ForkConnection(cluster, engine, str(address))

    def _connected(self, place: int, deadline: float) -> tuple[Address, Any]:
        address = self._address_of(place)
        return address, self._reach(address)


class SimulatedLinks(StoreLinks):
    """Leases are renewed between steps: there are no threads here."""

    def __init__(self, cluster: Cluster, engine: str) -> None:
        self._now = lambda: cluster.clock.now_ms() / 1000
        self._due = 0.0

        def reach(node: int, address: str) -> Link:
            return Link(cluster, node, address)

        super().__init__(
            engine, cluster.topics.shards, reach, lease_ms=LEASE_MS, clock=self._now, execution="fork-join"
        )
        self.forking = SimulatedForking(cluster, engine, self._address_of) if cluster.forking else None

    def keep(self, graph: StoresGraph) -> None:
        """What the keeper's thread does."""
        lease = type(graph).lease
        graph.lease = lambda snapshot, until: lease(graph, snapshot, until + _FOR_EVER_S)  # the machine may be slow
        if self._now() >= self._due:
            self._due = self._now() + LEASE_MS / 4000
            self.renew(graph)
