"""Which updates can be executed. The stored graph only grows: an update that removes triples is an error with its
position (docs/semantics.md §1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.ir import ChangeData, ChangeGraph, LoadDocument, Modify, TransferGraph
from penstock.query.text_faults import Fault, query_error

if TYPE_CHECKING:
    from penstock.errors import QueryError
    from penstock.query.ir import DataQuad, Operation, Update


def inserted_data(update: Update) -> tuple[DataQuad, ...]:
    """Return the quads of an update that consists of INSERT DATA. QueryError, with its position, for the first other
    operation.
    """
    quads: list[DataQuad] = []
    for operation in update.operations:
        if not isinstance(operation, ChangeData) or not operation.insert:
            raise _unsupported(update, operation)
        quads += operation.quads
    return tuple(quads)


def _unsupported(update: Update, operation: Operation) -> QueryError:
    grows = "the stored graph only grows"
    match operation:
        case ChangeData():
            message = f"DELETE DATA is not supported yet: {grows}"
        case Modify(delete=None):
            message = "INSERT … WHERE is not supported yet: of SPARQL Update there is INSERT DATA only"
        case Modify():
            message = f"DELETE is not supported yet: {grows}"
        case LoadDocument():
            message = "LOAD is not supported yet: load the document by Engine.load, Client.load or POST /data"
        case ChangeGraph(verb="CREATE") | TransferGraph(verb="ADD"):
            message = f"{operation.verb} is not supported yet: of SPARQL Update there is INSERT DATA only"
        case ChangeGraph() | TransferGraph():
            message = f"{operation.verb} is not supported yet: {grows}"
    return query_error(Fault(message, operation.at), update.text)
