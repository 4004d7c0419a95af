"""Evaluates updates in a query engine, on the snapshot that the engine has reached. The evaluation changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.graph_change import GraphChange, distinct
from penstock.engine.oneshot.failed_frames import clear_locals
from penstock.engine.oneshot.generic_plans import GenericPlans
from penstock.engine.oneshot.local_documents import document_change
from penstock.engine.oneshot.one_shot import OneShot
from penstock.engine.oneshot.updating import UpdateRun
from penstock.errors import DataPlaneError, QueryError
from penstock.query.protocol_dataset import update_with
from penstock.query.resolve import as_update
from penstock.query.supported_updates import check_supported
from penstock.term_ids.cluster_terms import OWN_BLANKS, OneShotCore
from penstock.term_ids.reencoding import to_cluster, to_stored
from penstock.updates.effects import MAX_INSERTION, Effect, check_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from penstock.engine.intake.streams import Streams
    from penstock.engine.oneshot.texts import Texts
    from penstock.engine.stored_graph import StoredGraph
    from penstock.query.ir import Dataset, LoadDocument, Operation, Update
    from penstock.query.prepared import BoundModify, BoundUpdate

_MAX_RETRIES = 3  # maximum number of retries after failures of stores


class UpdateEvaluator:
    """Evaluates updates. The object can be used from any thread.

    `insertions`: returns the number of the last insertion that the engine has applied. `texts`: the cache of parsed
    texts, which the engine shares with one-shot queries. `load_directory`: the directory from which LOAD is allowed to
    read files. None: LOAD is an error.
    """

    def __init__(
        self,
        core: OneShotCore,
        streams: Streams,
        texts: Texts,
        insertions: Callable[[], int],
        load_directory: Path | None = None,
    ) -> None:
        self.core, self.streams, self.insertions = core, streams, insertions
        self._load_directory = load_directory
        self._texts = texts
        self._generic = GenericPlans(streams, core.limits.plan_cache)

    def evaluate(self, text: str, base: str | None = None, dataset: Dataset | None = None) -> Effect:
        """Return the effect of an update on the latest snapshot.

        QueryError, with a position, if the text is not a valid update, if an operation fails, or if the update has LOAD
        and `load_directory` is None. LimitError if a pattern exceeds the limits of one-shot queries, or if the update
        removes and adds more than MAX_INSERTION triples together. UnavailableError if a store or the dictionary cannot
        be read now.
        """
        bound = self._texts.bound_update(text, base) if dataset is None else None
        if bound is not None:
            try:
                return self._attempts(bound)
            except QueryError:  # its position refers to another text
                pass
        update = update_with(as_update(self._texts.parse(text, base)), dataset)
        if self._load_directory is None:
            check_supported(update, where="without PENSTOCK_LOAD_DIRECTORY")
        return self._attempts(update)

    def _attempts(self, update: Update | BoundUpdate) -> Effect:
        """Evaluate an update. After the failure of a store, retry with a new view."""
        retries = 0
        while True:
            try:
                return self._evaluate(update)
            except BaseException as error:
                clear_locals(error)  # they retain the view
                retries += 1
                if not isinstance(error, DataPlaneError):
                    raise
                if retries > _MAX_RETRIES:
                    self.core.store.give_up(error)
                    raise

    def _evaluate(self, update: Update | BoundUpdate) -> Effect:
        lease = self.core.dictionary.lease()
        # Read the number before the view is created. The view can then contain later insertions. The coordinator treats
        # these as conflicts and repeats the evaluation. In the other order, it could overlook a conflict.
        insertions = self.insertions()
        graph = SnapshotGraph(self.core.store)
        core = replace(self.core, store=cast("StoredGraph", graph))
        try:
            one_shot = OneShot(core, self.streams, self._texts, self._generic)
            run = _ClusterRun(core, one_shot, update, load_directory=self._load_directory)
            change = run.evaluate()
        finally:
            graph.close()
        del lease
        removed, added = distinct(change.removed), distinct(change.added)
        check_size(len(removed[0]) + len(added[0]))
        names = np.unique(added[3])
        graphs = [term[1] for term in core.terms.service.decode(names[names != 0])]
        return Effect(insertions, removed, added, tuple(graphs))


class _ClusterRun(UpdateRun):
    """An execution whose operations see only ids of the cluster's dictionary. If an operation adds a computed term,
    later operations therefore read this term under its global id.
    """

    def _operation(self, operation: Operation | BoundModify) -> GraphChange:
        change = super()._operation(operation)
        assert isinstance(self.core, OneShotCore)
        dictionary, service = self.core.dictionary, self.core.terms.service
        s, p, o, g = to_stored(dictionary, change.removed, service, OWN_BLANKS)
        removed = s, p, o, g
        s, p, o, g = to_cluster(dictionary, change.added, service, OWN_BLANKS)
        return GraphChange(removed, (s, p, o, g))

    def _document(self, operation: LoadDocument, directory: Path) -> GraphChange:
        """Parse a document with a separate dictionary. The engine's dictionary then gets a term of the document only
        when a query reads this term.
        """
        assert isinstance(self.core, OneShotCore)
        own = replace(self.core, dictionary=native.Dictionary())
        added = document_change(own, operation, directory, MAX_INSERTION).added
        s, p, o, g = to_cluster(own.dictionary, added, self.core.terms.service)
        return GraphChange(added=(s, p, o, g))


class SnapshotGraph:
    """One snapshot of the stored graph, for the evaluation of one update.

    The snapshot has a separate table of edge labels, which is at first a copy of the engine's table. The update can add
    labels to this table. The cluster assigns a number to such a new label only when the update is committed.
    """

    placement = None  # forks would read the stores without the changes of earlier operations

    def __init__(self, graph: StoredGraph) -> None:
        self._view: native.Source | None = graph.view()
        self.labels = native.Store("", 1)
        self.labels.define_labels(1, *graph.labels.label_pairs())  # after the view, whose labels it must have

    def view(self, bounds: Sequence[tuple[int, int]] = ()) -> native.Source:
        """Return the view of the snapshot."""
        del bounds
        assert self._view is not None
        return self._view

    def close(self) -> None:
        """Release the view, even if the closures of a failed evaluation still refer to this graph."""
        self._view = None

    def forker(self, view: native.Source, fragments: Mapping[int, str]) -> native.Forker | None:
        """Return None, because all operators run in this process."""
        del view, fragments
        return None
