"""Datasets that come from a request and not from the text of a query or update (SPARQL 1.1 Protocol §2.1.4, §2.2.3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Iri
from penstock.query.ir import Dataset, Modify, Update
from penstock.query.text_faults import Fault, query_error
from penstock.rdf.terms import check_iri

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.query.ir import ContinuousQuery, Operation


def dataset_of(default_graphs: Iterable[str], named_graphs: Iterable[str]) -> Dataset | None:
    """Return the dataset of the graphs with the given IRIs. None if no IRI is given. DataError if an IRI is invalid or
    relative.
    """
    if default_graphs == () == named_graphs:
        return None
    default, named = (tuple(Iri(check_iri(iri)) for iri in iris) for iris in (default_graphs, named_graphs))
    return Dataset(default, named) if default or named else None


def query_with(query: ContinuousQuery, dataset: Dataset | None) -> ContinuousQuery:
    """Return a one-shot query with a dataset. The dataset replaces the query's FROM and FROM NAMED clauses."""
    return query if dataset is None else replace(query, dataset=dataset)


def update_with(update: Update, dataset: Dataset | None) -> Update:
    """Return an update whose patterns read a dataset. The effect is as if every operation had USING clauses with the
    dataset. QueryError, with its position, for an operation with USING, USING NAMED or WITH.
    """
    if dataset is None:
        return update
    return replace(update, operations=tuple(_with(update, operation, dataset) for operation in update.operations))


def _with(update: Update, operation: Operation, dataset: Dataset) -> Operation:
    if not isinstance(operation, Modify):
        return operation
    if operation.own_dataset:
        message = "USING and WITH cannot stand in an update whose request names its graphs"
        raise query_error(Fault(message, operation.at), update.text)
    return replace(operation, query=replace(operation.query, dataset=dataset))
