"""Checks which updates can be executed. For other updates, this module makes errors with positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.ir import ChangeData, ChangeGraph, LoadDocument, Modify, TransferGraph
from penstock.query.text_faults import Fault, query_error

if TYPE_CHECKING:
    from penstock.errors import QueryError
    from penstock.query.ir import Operation, Update
    from penstock.query.prepared import BoundUpdate


def check_supported(update: Update, *, where: str = "without a load_directory") -> None:
    """Raise QueryError for the first `LOAD`, with the position of this operation. `LOAD` cannot be executed without a
    `load_directory`. `LOAD SILENT` is permitted, because its failure is not an error. `where`: part of the message.
    """
    for operation in update.operations:
        if isinstance(operation, LoadDocument) and not operation.silent:
            message = f"LOAD is not supported {where}: use Engine.load, Client.load or POST /data"
            raise error_in(update, operation, message)


def is_data(update: Update | BoundUpdate) -> bool:
    """Return whether an update consists only of INSERT DATA and DELETE DATA. Such an update reads nothing."""
    for operation in update.operations:  # noqa: SIM110 - a generator takes longer than the rest of a small update's check
        if not isinstance(operation, ChangeData):
            return False
    return True


def check_data(update: Update) -> None:
    """Raise QueryError, with a position, if an update has an operation other than INSERT DATA and DELETE DATA."""
    for operation in update.operations:
        if not isinstance(operation, ChangeData):
            message = f"{_verb(operation)} needs an evaluation: use INSERT DATA or DELETE DATA"
            raise error_in(update, operation, message)


def error_in(update: Update | BoundUpdate, operation: Operation, message: str) -> QueryError:
    """Return a QueryError at the position of an operation."""
    return query_error(Fault(message, operation.at), update.text)


def _verb(operation: Operation) -> str:
    match operation:
        case ChangeData():
            return "INSERT DATA" if operation.insert else "DELETE DATA"
        case Modify():
            return "DELETE … WHERE" if operation.delete else "INSERT … WHERE"
        case ChangeGraph() | TransferGraph():
            return operation.verb
        case LoadDocument():
            return "LOAD"
