"""The engine's side of store nodes: finds them, sends them the log, keeps its lease on them, and reads them."""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.errors import DataError, DataPlaneError, LimitError, PenstockError, StorageError
from penstock.node.journal import Journal
from penstock.node.stream import RemoteStream
from penstock.query.planning.cost.placement import Placement
from penstock.remote import PlaneLimits, connect
from penstock.remote.control_connection import Address, Connection, ControlError, lease_end
from penstock.remote.fork_join import Forking
from penstock.remote.remote_graph import NodesGraph

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.core import _native as native
    from penstock.node.stream import StreamSettings
    from penstock.query.planning.cost.placement import Execution
    from penstock.remote import Transport
    from penstock.remote.control_connection import Columns

T = TypeVar("T")

_log = logging.getLogger(__name__)
_RETRY_S = 0.02
_NEWEST = (1 << 32) - 1
_LIMITS = PlaneLimits()
_ERRORS: dict[str, type[PenstockError]] = {"DataError": DataError, "LimitError": LimitError}


class _Node:
    """One node: two control connections (writes, leases), so that a lease never waits behind a commit."""

    def __init__(self, number: int, address: Address, transport: Transport) -> None:
        self.number = number
        self.address = address
        self.transport: Transport = transport
        self.writes: Connection | None = None
        self.leases: Connection | None = None
        self.plane: native.Plane | None = None
        self.own: list[int] = []
        self.keeps = False  # checkpoints

    def drop(self) -> None:
        for connection in (self.writes, self.leases):
            if connection is not None:
                connection.close()
        self.writes = self.leases = None


class Nodes:
    """The nodes that keep a stored graph together, for one engine that also writes to them.

    addresses: one node each; together they own every shard, each shard once. secret: what nodes and engines share.
    transport: of reads, for all nodes or for each. lease_ms: how long nodes keep what this engine needs after it was
    last heard of. patience_s: how long it waits for a node that has gone. journal_mb: bound of the log that is kept for
    nodes that come back. checkpoint_mb: nodes that keep checkpoints are asked for one whenever that log has grown by so
    much, and it begins there from then on. limits: of the plane to each node. rdma_device: empty is the first that can
    be used. execution: of steps over the stored graph, in place or by fork-join; "auto" takes what costs less (ADR 18).

    Pass it to `penstock.Engine(nodes=…)`, which closes it. Raises DataPlaneError where a node cannot be reached.
    """

    def __init__(
        self,
        addresses: Sequence[Address],
        secret: bytes,
        *,
        transport: Transport | Sequence[Transport] = "auto",
        lease_ms: int = 10_000,
        patience_s: float = 30.0,
        journal_mb: int = 1024,
        checkpoint_mb: int = 256,
        limits: PlaneLimits = _LIMITS,
        rdma_device: str = "",
        execution: Execution = "auto",
    ) -> None:
        self._secret = secret
        self._execution: Execution = execution
        self._limits = limits
        self._rdma_device = rdma_device
        self._lease_s = lease_ms / 1000
        self._patience_s = patience_s
        self._name = secrets.token_hex(8)
        self._journal = Journal(journal_mb << 20)
        self._checkpoint_bytes = checkpoint_mb << 20
        self._checkpoint_at = self._checkpoint_bytes  # when the journal takes so much
        self._labels = 0
        self._snapshot = 0
        transports: Sequence[Any] = [transport] * len(addresses) if isinstance(transport, str) else transport
        self._nodes = [_Node(n, *reached) for n, reached in enumerate(zip(addresses, transports, strict=True))]
        self._writing = threading.RLock()
        self._leasing = threading.Lock()  # connections for leases; taken after _writing
        self._stop = threading.Event()
        self._streams: dict[int, RemoteStream] = {}
        try:
            self._meet()
        except BaseException:
            for node in self._nodes:
                node.drop()
            raise
        self._keeper = threading.Thread(target=self._keep, daemon=True, name="penstock-lease")
        self._keeper.start()

    def _meet(self) -> None:
        hello = [self._call(node) for node in self._nodes]
        self._check_shards([int(status["shards"]) for status in hello])
        self.graph = NodesGraph(self, int(hello[0]["shards"]))
        for node, status in zip(self._nodes, hello, strict=True):
            self._attach(node, int(status["data_port"]))
        owners = {shard: node.number for node in self._nodes for shard in node.own}
        by_shard = [owners[shard] for shard in range(len(owners))]
        addresses = [node.address for node in self._nodes]
        self.forking = Forking(by_shard, addresses.__getitem__, self._secret, self._patience_s)
        self.placement = Placement(self._execution, tuple(self.transports()), self.forking.places)
        self._renew()

    def close(self) -> None:
        """Let go of leases and connections. The nodes go on."""
        self._stop.set()
        self._keeper.join()
        self.forking.close()
        for node in self._nodes:
            if node.leases is not None:
                with contextlib.suppress(DataPlaneError):
                    node.leases.ask({"do": "leave", "engine": self._name})
            node.drop()

    def transports(self) -> list[str]:
        """How reads of each node travel: "shm", "tcp" or "rdma"."""
        return [node.plane.transport(node.number) for node in self._nodes if node.plane is not None]

    # ---- connections
    def _call(self, node: _Node) -> dict[str, Any]:
        node.drop()
        node.writes = Connection.to(node.address, self._secret, self._patience_s)
        node.leases = Connection.to(node.address, self._secret, self._patience_s)
        status = node.writes.ask({"do": "hello", "log": self._name})
        self._check_answer(status)
        node.own = [int(shard) for shard in status["own"]]
        node.keeps = bool(status["keeps"])
        return status

    def _check_shards(self, counts: list[int]) -> None:
        owned = sorted(shard for node in self._nodes for shard in node.own)
        if len(set(counts)) != 1 or owned != list(range(counts[0])):
            raise DataError(f"the nodes own shards {owned} of {counts}: every shard must have one node")

    def _attach(self, node: _Node, port: int) -> None:
        reach = (node.number, node.address.host, port, self._secret, node.transport)
        node.plane = connect(*reach, limits=self._limits, rdma_device=self._rdma_device)
        self.graph.attach(node.number, node.plane)

    def recover(self) -> None:
        """Find nodes that have gone again, and send them what they miss. DataPlaneError where one stays away."""
        with self._writing:
            deadline = time.monotonic() + self._patience_s
            while True:
                try:
                    for node in self._nodes:
                        self._catch_up(node)
                    self._renew()
                except DataPlaneError:
                    if time.monotonic() >= deadline:
                        raise
                    time.sleep(_RETRY_S)
                else:
                    return

    def _catch_up(self, node: _Node) -> None:
        """Send what the node has not applied; the plane is new too, as its regions may be others."""
        with self._leasing:  # the keeper's thread asks over the same connection
            status = self._call(node)
            # Before it applies anything: what it commits from now on must stay readable from where we are, and slices
            # that nobody needs are not published again.
            released = self._released()
            self._ask_lease(node, self.graph.oldest_needed(), released)
        position = int(status["position"])
        if position < self._journal.begin:
            raise StorageError(
                f"node {node.address} has lost its checkpoint: the log before {self._journal.begin} is gone"
            )
        for following in range(position, self._journal.end):
            self._send(node, following)
        self._attach(node, int(status["data_port"]))

    # ---- the log
    def _send(self, node: _Node, position: int) -> None:
        assert node.writes is not None
        entry = self._journal[position]
        node.writes.send({"do": "apply", "position": position, "entry": entry.fields}, entry.columns)
        self._check_answer(node.writes.receive()[0])

    def _append(self, fields: dict[str, Any], columns: Columns) -> None:
        """Put an entry into the log and wait until every node has applied it."""
        position = self._journal.append(fields, columns)
        try:
            for node in self._nodes:
                if node.writes is None:
                    raise ControlError(f"node {node.address} is gone")
                node.writes.send({"do": "apply", "position": position, "entry": fields}, columns)
            for node in self._nodes:
                assert node.writes is not None
                self._check_answer(node.writes.receive()[0])
        except DataPlaneError as error:
            _log.warning("a node has gone: %s", error)
            self.recover()
        else:
            self.graph.published(self._snapshot)

    @staticmethod
    def _check_answer(answer: dict[str, Any]) -> None:
        if "error" in answer:
            raise _ERRORS.get(answer["kind"], StorageError)(answer["error"])

    def _with_labels(self, fields: dict[str, Any], columns: Columns) -> tuple[dict[str, Any], Columns]:
        """Add the labels that the nodes do not know yet."""
        graphs, predicates = self.graph.label_pairs(self._labels + 1)
        if not len(graphs):
            return fields, columns
        first, self._labels = self._labels + 1, self._labels + len(graphs)
        return {**fields, "first_label": first}, {**columns, "graphs": graphs, "predicates": predicates}

    def commit(self, columns: Columns) -> int:
        """Commit edges (s, absorbed: labels, o) as one snapshot; returns its number."""
        with self._writing:
            self._snapshot += 1
            self._append(*self._with_labels({"kind": "commit", "snapshot": self._snapshot}, columns))
            return self._snapshot

    def declare(self, stream: int, batch_ms: int) -> None:
        """Make the nodes publish a stream's slices."""
        with self._writing:
            self._append({"kind": "declare", "stream": stream, "batch_ms": batch_ms}, {})
            self.patiently(self.graph.refresh)

    def batch(self, stream: int, batch: int, columns: Columns) -> None:
        """Close a batch that holds tuples: columns ts, s, o, labels, absorbed (0: a timing tuple), in order of time."""
        with self._writing:
            absorbs = bool(columns["absorbed"].any())
            self._snapshot += absorbs
            fields = {"kind": "batch", "stream": stream, "batch": batch, "snapshot": self._snapshot if absorbs else 0}
            self._append(*self._with_labels(fields, columns))

    def end_batches(self, stream: int, batch: int) -> None:
        """Close empty batches up to this one."""
        with self._writing:
            self._append({"kind": "close", "stream": stream, "batch": batch}, {})

    def settle(self) -> None:
        """Let nodes make checkpoints where the journal has grown. To be called when no stream lacks slices of a batch
        that is closed: a node that comes back publishes those after its checkpoint only.
        """
        with self._writing:
            if self._journal.bytes < self._checkpoint_at or not all(node.keeps for node in self._nodes):
                return
            if any(stream.behind for stream in self._streams.values()):
                return
            try:
                self._journal.forget_before(min(self._checkpoints()))
            except DataPlaneError as error:
                _log.warning("a node has gone: %s", error)
                self.recover()
            except PenstockError as error:  # a disk is full, perhaps: the journal goes on
                _log.warning("a node could not make a checkpoint: %s", error)
            self._checkpoint_at = self._journal.bytes + self._checkpoint_bytes

    def _checkpoints(self) -> list[int]:
        """Make all nodes save what they have; the positions up to which each did."""
        for node in self._nodes:
            if node.writes is None:
                raise ControlError(f"node {node.address} is gone")
            node.writes.send({"do": "checkpoint"})
        answers = [node.writes.receive()[0] for node in self._nodes if node.writes is not None]
        for answer in answers:
            self._check_answer(answer)
        return [int(answer["position"]) for answer in answers]

    @property
    def snapshot(self) -> int:
        """The number of the last commit."""
        return self._snapshot

    def stream(self, declaration: StreamSettings, number: int, dictionary: native.Dictionary) -> RemoteStream:
        """Return a stream whose batches the nodes take and publish."""
        made = self._streams[number] = RemoteStream(self, declaration, number, dictionary)
        return made

    # ---- leases
    def _keep(self) -> None:
        while not self._stop.wait(self._lease_s / 4):
            try:
                self._renew()
            except PenstockError as error:
                _log.warning("a lease could not be renewed: %s", error)

    def _renew(self) -> None:
        """Renew the lease on all nodes. It holds from before the first was asked: they count from when they answer."""
        with self._leasing:
            released = self._released()
            needed = self.graph.oldest_needed()
            began = time.monotonic()
            granted = max(self._ask_lease(node, needed, released) for node in self._nodes)
            self.graph.lease(granted, lease_end(began, self._lease_s))

    def _ask_lease(self, node: _Node, snapshot: int, released: dict[int, tuple[int, int]]) -> int:
        if node.leases is None:
            raise ControlError(f"node {node.address} is gone")
        lease_ms = int(self._lease_s * 1000)
        asked = {"do": "lease", "engine": self._name, "lease_ms": lease_ms, "released": released}
        answer = node.leases.ask({**asked, "snapshot": snapshot})
        if answer.get("kind") == "StorageError":  # our lease had run out: views that are open cannot go on
            snapshot = _NEWEST
            answer = node.leases.ask({**asked, "snapshot": snapshot})
        self._check_answer(answer)
        # Where our lease had run out, nodes may have let go of logs: an older bound would show what it should hide.
        for stream, batch in answer["released"].items():
            self.graph.release(int(stream), int(batch))
        return int(answer["snapshot"]) if snapshot == _NEWEST else snapshot

    def _released(self) -> dict[int, tuple[int, int]]:
        bounds = dict(self.graph.releases())
        return {n: (bounds[n], stream.released) for n, stream in list(self._streams.items()) if n in bounds}

    def patiently(self, read: Callable[[], T]) -> T:
        """Return what `read` returns. Where it fails because a node has gone, wait until it is back, and read again.

        DataPlaneError where that takes longer than the patience.
        """
        deadline = time.monotonic() + self._patience_s
        while True:
            try:
                return read()
            except DataPlaneError:
                if time.monotonic() >= deadline:
                    raise
            self.recover()
