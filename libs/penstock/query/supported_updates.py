"""Which updates can be executed. The stored graph only grows: an operation that removes triples is an error with its
position (docs/semantics.md §1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.ir import ChangeData, ChangeGraph, LoadDocument, Modify, TransferGraph
from penstock.query.text_faults import Fault, query_error

if TYPE_CHECKING:
    from penstock.errors import QueryError
    from penstock.query.ir import DataQuad, Operation, Update


def check_supported(update: Update) -> None:
    """Raise QueryError, with its position, for the first operation that removes triples or reads a document. Does not
    detect COPY to a graph that has triples, which `UpdateRun` refuses.
    """
    grows = "is not supported yet: the stored graph only grows"
    for operation in update.operations:
        match operation:
            case ChangeData(insert=False):
                raise error_in(update, operation, f"DELETE DATA {grows}")
            case Modify() if operation.delete:
                raise error_in(update, operation, f"DELETE {grows}")
            case ChangeGraph(verb="CLEAR" | "DROP"):
                raise error_in(update, operation, f"{operation.verb} {grows}")
            case TransferGraph(verb="MOVE") if operation.source != operation.target:
                raise error_in(update, operation, f"MOVE {grows}")
            case LoadDocument():
                message = "LOAD is not supported yet: use Engine.load, Client.load or POST /data"
                raise error_in(update, operation, message)


def is_data(update: Update) -> bool:
    """Return whether an update consists of INSERT DATA and DELETE DATA, so that it reads nothing."""
    return all(isinstance(operation, ChangeData) for operation in update.operations)


def inserted_data(update: Update) -> tuple[DataQuad, ...]:
    """Return the quads of an update that consists of INSERT DATA. QueryError, with its position, for the first other
    operation.
    """
    check_supported(update)
    quads: list[DataQuad] = []
    for operation in update.operations:
        if not isinstance(operation, ChangeData):
            verb = operation.verb if isinstance(operation, ChangeGraph | TransferGraph) else "INSERT … WHERE"
            raise error_in(update, operation, f"{verb} is not supported in a cluster yet: use INSERT DATA")
        quads += operation.quads
    return tuple(quads)


def error_in(update: Update, operation: Operation, message: str) -> QueryError:
    """Return a QueryError at the position of an operation."""
    return query_error(Fault(message, operation.at), update.text)
