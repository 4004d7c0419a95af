"""Quads to store or remove, from a document or an update. The coordinator parses the quads without its lock, so that
other requests need not wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.intake.graph_change import NO_QUADS
from penstock.engine.oneshot.updating import data_change
from penstock.query.parser import parse
from penstock.query.protocol_dataset import dataset_of, update_with
from penstock.query.resolve import as_update
from penstock.query.supported_updates import check_data, is_data
from penstock.rdf.parsing import parse as parse_document
from penstock.rdf.terms import IRI, check_iri
from penstock.term_ids.reencoding import to_cluster, to_stored
from penstock.updates.effects import check_size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.core._native import Ids
    from penstock.engine.oneshot.texts import Texts
    from penstock.http.protocol_requests import ProtocolOperation
    from penstock.query.ir import Update
    from penstock.query.prepared import BoundUpdate
    from penstock.term_ids.cluster_terms import TermService
    from penstock.updates.effects import Effect


@dataclass(frozen=True, slots=True, eq=False)
class Insertion:
    """Quads to remove, and quads to store afterwards. `columns`: s, p, o and g of the quads to store, as ids of the
    cluster's dictionary. `graphs`: IRIs of the named graphs in column g. `terms`: number of distinct terms. `removed`:
    columns of the quads to remove. `evaluated_on`: the number of the last insertion that was visible when an engine
    computed the quads. None if the quads do not depend on stored data.
    """

    columns: Sequence[Ids]
    graphs: tuple[str, ...]
    terms: int
    evaluated_on: int | None = None
    removed: Sequence[Ids] = NO_QUADS

    def __len__(self) -> int:
        return len(self.removed[0]) + len(self.columns[0])

    @classmethod
    def of_document(
        cls, service: TermService, data: bytes, syntax: str, graph: str | None = None, base: str | None = None
    ) -> Insertion:
        """Parse an RDF document and encode its terms. `graph`: IRI of the graph for statements that name no graph.

        DataError, with the line, if the document is invalid. LimitError if the document has more than MAX_INSERTION
        triples. TransientError if the dictionary service (`service`) is unavailable.
        """
        dictionary = native.Dictionary()
        quads = parse_document(dictionary, data, syntax, base)
        graphs = quads.graphs
        if graph is not None:
            graphs = np.where(graphs == 0, np.uint64(dictionary.intern(IRI, check_iri(graph))), graphs)
        return cls._encoded(service, dictionary, (quads.subjects, quads.predicates, quads.objects, graphs))

    @classmethod
    def of_update(cls, service: TermService, text: str, base: str | None = None) -> Insertion:
        """Parse an update that has only INSERT DATA and DELETE DATA, and encode its terms. QueryError for any other
        text. LimitError and TransientError as for `of_document`.
        """
        update = as_update(parse(text, base))
        check_data(update)
        return cls._of_data(service, update)

    @classmethod
    def of_operation(cls, service: TermService, operation: ProtocolOperation, texts: Texts) -> Insertion | None:
        """Read an update. If the update has only INSERT DATA and DELETE DATA, encode its terms. Otherwise, return None;
        a query engine must then evaluate the update. QueryError if the text is invalid. LimitError and TransientError
        as for `of_document`. `texts`: the texts of earlier updates.
        """
        text, base = operation.text, operation.base
        dataset = dataset_of(operation.default_graphs, operation.named_graphs)
        bound = texts.bound_update(text, base) if dataset is None else None
        if bound is not None:
            return cls._of_data(service, bound) if is_data(bound) else None
        update = update_with(as_update(texts.parse(text, base)), dataset)
        return cls._of_data(service, update) if is_data(update) else None

    @classmethod
    def of_effect(cls, effect: Effect) -> Insertion:
        """Return the quads that an evaluated update removes and adds."""
        return cls(effect.added, effect.graphs, 0, effect.insertions, effect.removed)

    @classmethod
    def _of_data(cls, service: TermService, update: Update | BoundUpdate) -> Insertion:
        dictionary = native.Dictionary()
        change = data_change(dictionary, update)
        return cls._encoded(service, dictionary, change.added, change.removed)

    @classmethod
    def _encoded(
        cls,
        service: TermService,
        dictionary: native.Dictionary,
        columns: Sequence[Ids],
        removed: Sequence[Ids] = NO_QUADS,
    ) -> Insertion:
        check_size(len(removed[0]) + len(columns[0]))
        named = native.LocalTerms(dictionary).decode(np.unique(columns[3]))
        graphs = tuple(term[1] for term in named if term is not None)
        gone = to_stored(dictionary, removed, service) if len(removed[0]) else NO_QUADS
        return cls(to_cluster(dictionary, columns, service), graphs, dictionary.size(), removed=gone)
