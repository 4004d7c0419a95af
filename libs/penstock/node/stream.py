"""A stream whose closed batches nodes take and publish: what `native.Stream` is to the embedded engine."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NoReturn, Protocol

import numpy as np

from penstock.core import _native as native
from penstock.errors import LimitError, StorageError
from penstock.rdf.terms import IRI
from penstock.remote.control_connection import ControlError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.node.cluster import Nodes

_TUPLE_BYTES = 36  # of an open batch
NEVER = -(1 << 62)


class StreamSettings(Protocol):
    """What of a stream's declaration (`penstock.engine`) is needed here."""

    @property
    def batch_ms(self) -> int:
        """The batch interval."""

    @property
    def timing(self) -> tuple[str, ...] | str:
        """IRIs of timing predicates, or "all"."""

    @property
    def absorb_into(self) -> str | None:
        """The graph that takes timeless tuples; None is the default graph."""

    @property
    def slice_mb(self) -> int | None:
        """The budget of open batches and copies."""


class RemoteStream:
    """Open batches are here, with whoever decides what belongs to them; closed ones come back as slices from the nodes.

    `slices` is what windows read. One thread, as the engine's writer.
    """

    def __init__(self, nodes: Nodes, declaration: StreamSettings, number: int, dictionary: native.Dictionary) -> None:
        self._nodes = nodes
        self._number = number
        self._batch_ms = declaration.batch_ms
        self._dictionary = dictionary
        self._memory = 0 if declaration.slice_mb is None else declaration.slice_mb << 20
        timing = declaration.timing
        self._all_timing = timing == "all"
        self._timing = np.array([] if self._all_timing else [dictionary.intern(IRI, p) for p in timing], np.uint64)
        self._graph = 0 if declaration.absorb_into is None else dictionary.intern(IRI, declaration.absorb_into)
        named = [*self._timing.tolist(), *([self._graph] if self._graph else [])]
        dictionary.keep(np.array(named, np.uint64))
        self._open: dict[int, list[tuple[np.ndarray, ...]]] = defaultdict(list)
        self._open_tuples = 0
        self._stored_tuples = 0
        self._ticks: dict[int, int] = {}  # batch -> the dictionary's tick when its first tuple came, while live
        self._closed: int | None = None
        self.behind = False  # slices of a closed batch are not copied yet
        self.released = NEVER
        self.slices = native.RemoteSlices(nodes.graph, number, self._batch_ms, self._memory)
        nodes.declare(number, self._batch_ms)

    # ---- tuples
    def append(self, times: NDArray[np.int64], s: Ids, p: Ids, o: Ids) -> None:
        """Put tuples into their open batches; LimitError where the budget would be exceeded, and nothing changes."""
        needed = self.live_bytes() + len(times) * _TUPLE_BYTES
        if self._memory and needed > self._memory:
            raise LimitError(f"stream {self._number} would need {needed} bytes, its budget is {self._memory}")
        labels, absorbed = self._labels(p)
        self._dictionary.touch(s)
        self._dictionary.touch(o)
        self._dictionary.keep(p)
        batches = -(-times // self._batch_ms) - 1  # (k Δ, (k + 1) Δ]
        for batch in np.unique(batches).tolist():
            rows = batches == batch
            self._ticks.setdefault(batch, self._dictionary.tick())
            self._open[batch].append((times[rows], s[rows], o[rows], labels[rows], absorbed[rows]))
        self._open_tuples += len(times)

    def _labels(self, p: Ids) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Each tuple's label in windows, and in the stored graph: 0 for timing tuples."""
        graph = self._nodes.graph
        labels = graph.number_labels(np.zeros(len(p), np.uint64), p)
        absorbed = np.zeros(len(p), np.uint32)
        if not self._all_timing:
            rows = np.flatnonzero(~np.isin(p, self._timing))
            absorbed[rows] = graph.number_labels(np.full(len(rows), self._graph, np.uint64), p[rows])
        return labels, absorbed

    # ---- closing
    def close(self, batch: int) -> int:
        """Close every batch up to this one, on all nodes, and copy what they publish. Returns how many held tuples."""
        if self._closed is not None and batch <= self._closed:
            return 0
        self.behind = True
        held = sorted(k for k in self._open if k <= batch)
        for number in held:
            self._close_one(number)
            self._closed = number
        if self._closed != batch:
            self._nodes.end_batches(self._number, batch)
        self._closed = batch
        self._take(batch)
        self.behind = False
        self._nodes.settle()
        return len(held)

    def _close_one(self, batch: int) -> None:
        parts = self._open[batch]
        ts, s, o, labels, absorbed = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(ts, kind="stable")
        stored = absorbed != 0
        self._dictionary.keep(s[stored])
        self._dictionary.keep(o[stored])
        columns = {"ts": ts, "s": s, "o": o, "labels": labels, "absorbed": absorbed}
        self._nodes.batch(self._number, batch, {name: column[order] for name, column in columns.items()})
        del self._open[batch]
        self._stored_tuples += int(stored.sum())
        self._open_tuples -= len(ts)

    def _take(self, batch: int) -> None:
        """Copy the slices up to a batch, once all nodes have closed it."""

        def take() -> None:
            (stable,) = self._nodes.graph.stable_vts([self._number])
            if stable is None or stable < batch:
                raise ControlError(f"a node has not closed batch {batch} of stream {self._number}")
            self.slices.take(batch)

        self._nodes.patiently(take)

    # ---- what is here
    def first_open(self) -> int | None:
        """Number of the first open batch that holds tuples."""
        return min(self._open, default=None)

    def release(self, batch: int) -> None:
        """Let go of slices up to this batch; nodes are told with the next lease."""
        self.released = max(self.released, batch)
        self.slices.release(batch)
        for gone in [k for k in self._ticks if k <= batch and k not in self._open]:
            del self._ticks[gone]

    def oldest_tick(self) -> int | None:
        """The dictionary's tick when the oldest tuple that is live here came."""
        return min(self._ticks.values(), default=None)

    def live_tuples(self) -> int:
        """Tuples of open batches and of copies."""
        return self._open_tuples + self.slices.tuples()

    def stored_tuples(self) -> int:
        """Timeless tuples that were absorbed."""
        return self._stored_tuples

    def live_bytes(self) -> int:
        """What counts against the stream's budget."""
        return self._open_tuples * _TUPLE_BYTES + self.slices.bytes()

    def held_bytes(self) -> int:
        """Memory of this process that the stream takes."""
        return self.live_bytes()

    def save(self) -> NoReturn:
        """Refuse: an engine over nodes has no checkpoints of its own."""
        raise StorageError("a stream whose batches lie on nodes cannot be saved")

    def restore(self, saved: bytes) -> NoReturn:
        """Refuse likewise."""
        raise StorageError(f"a stream whose batches lie on nodes cannot be restored from {len(saved)} bytes")
