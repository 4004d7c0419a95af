"""The stored graph of a cluster as a query engine reads it: in the stores that have its shards (ADR 37, 38).

An engine reads at the snapshot that it has come to, which it counts by the stores' own rule (`commits`): stores that
are ahead look to it as if they were not. One that is behind is waited for, a moment in place, then between steps.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from penstock.core import _native as native
from penstock.errors import DataPlaneError, UnavailableError
from penstock.rdf.terms import IRI
from penstock.remote.remote_graph import RemoteGraph
from penstock.replication.absorption import Absorption, batch_labels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from penstock.engine.answers.answer_values import Ids
    from penstock.engine.intake.declaration import Declaration
    from penstock.query.planning.cost.placement import Placement
    from penstock.remote.fork_join import Forking
    from penstock.remote.store_links import StoreLinks
    from penstock.term_ids.cluster_terms import TermCache

T = TypeVar("T")

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.000_2, 0.005
_MEND_AFTER_S = 0.03  # a store that takes longer to come to a snapshot may not be the one that has the shard


class StoresGraph(RemoteGraph):
    """Reads of any thread; steps are taken in by one. `snapshot`: the number of the last commit.

    `beside` is what streams' slices need of a store in this process: it knows the labels, and stores nothing.
    `patience_s`: how long a read waits in place. Then it raises AwayError, and may be made again.
    """

    def __init__(self, shards: int, links: StoreLinks, terms: TermCache, patience_s: float, labels: str = "") -> None:
        super().__init__(shards)
        self.links = links
        self.snapshot = 0
        self.beside = native.Store.open(labels, "") if labels else native.Store("", 1)
        self._terms = terms
        self._patience_s = patience_s
        graphs, predicates = self.beside.label_pairs()
        self.define_labels(1, graphs, predicates)

    # ---- what the log says
    def number_labels(self, graphs: Ids, predicates: Ids) -> NDArray[np.uint32]:
        """Return the labels' numbers: the same as in stores, as whoever follows the log numbers them alike."""
        self.beside.number_labels(graphs, predicates)
        return super().number_labels(graphs, predicates)

    def commit(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int = 0, batch: int = 0) -> int:
        """Count an insertion, which stores commit."""
        del s, o, stream, batch
        self.number_labels(g, p)
        self.snapshot += 1
        return self.snapshot

    def loaded(self, graphs: Ids, predicates: Ids) -> None:
        """Count a bulk load, which stores take in."""
        self.number_labels(graphs, predicates)
        self.snapshot += 1

    def batch(self, absorption: Absorption, predicates: Ids) -> None:
        """Count what stores commit of a batch."""
        self.snapshot += bool(batch_labels(self, absorption, predicates).any())

    def capture(self, directory: str, previous: str = "") -> native.StoreCapture:
        """Copy the labels: the graph is in the stores."""
        return self.beside.capture(directory, previous)

    # ---- `Elsewhere`
    @property
    def placement(self) -> Placement | None:
        """How steps may be executed over the stores."""
        return self.links.execution()

    @property
    def forking(self) -> Forking | None:
        """What takes steps to the stores, if anything does."""
        return self.links.forking

    def stream(self, declaration: Declaration, number: int, dictionary: native.Dictionary) -> native.Stream:
        """Return a stream whose windows are here. Its timing predicates have the cluster's ids: AwayError where they
        cannot be had, as with private ones it would count commits that no store has.
        """
        timing = declaration.timing
        names = () if timing == "all" else timing
        ids = tuple(self._terms.constant((IRI, name, "", "")) for name in names)
        into = declaration.absorb_into
        graph = 0 if into is None else self._terms.constant((IRI, into, "", ""))
        absorption = Absorption(None if timing == "all" else ids, graph)
        return WindowStream(self, dictionary, absorption, number, declaration.batch_ms)

    # ---- reading
    def view(self, bounds: Sequence[tuple[int, int]] = (), at: int | None = None) -> native.Source:
        """Return the graph at the snapshot that this engine has come to. AwayError where stores keep it waiting."""
        return self._patiently(lambda: self._view(bounds, at))

    def _view(self, bounds: Sequence[tuple[int, int]], at: int | None = None) -> native.Source:
        self.links.check()
        return native.RemoteStore.view(self, bounds, self.snapshot if at is None else at)

    def glance(self) -> native.Source:
        """Return the graph for counts, without waiting."""
        try:
            return self._view(())
        except DataPlaneError as error:
            raise UnavailableError(str(error)) from error

    def unread(self, bounds: Sequence[tuple[int, int]]) -> native.Source:
        """Return what stands for the graph where nobody looks into it: nothing that could be away."""
        del bounds
        return self.beside.view()

    def give_up(self, error: DataPlaneError) -> None:
        """Let an evaluation wait that was interrupted too often."""
        raise UnavailableError(f"the stores cannot be read: {error}") from error

    def latest(self) -> int:
        """Return the snapshot that this engine has come to."""
        return self.snapshot

    def _patiently(self, read: Callable[[], T]) -> T:
        began, pause = time.monotonic(), _FIRST_PAUSE_S
        while True:
            try:
                return read()
            except DataPlaneError as error:
                waited = time.monotonic() - began
                if error.fault != "behind" or waited >= min(_MEND_AFTER_S, self._patience_s):
                    self.links.mend(self, doubtful=error.fault != "behind" and self.links.valid)
                if waited >= self._patience_s:
                    return self._last_try(read)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _last_try(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except DataPlaneError as error:
            reason = self.links.last_error or str(error)
            raise UnavailableError(f"the stores cannot be read: {reason}") from error


class WindowStream(native.Stream):
    """Open and closed batches of a stream for windows; what of them is stored, stores take from the log."""

    def __init__(
        self, graph: StoresGraph, dictionary: native.Dictionary, absorption: Absorption, number: int, batch_ms: int
    ) -> None:
        super().__init__(graph.beside, dictionary, number=number, batch_ms=batch_ms, timing=None)
        self._count = graph.batch
        self._absorption = absorption

    def append(self, ts: NDArray[np.int64], s: Ids, p: Ids, o: Ids) -> None:
        """Take the tuples of one batch, which the same step closes."""
        self._count(self._absorption, p)  # labels are numbered in the stores' order, which is not that of arrival
        super().append(ts, s, p, o)
