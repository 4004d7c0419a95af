"""Penstock: continuous SPARQL queries over RDF streams and a stored graph."""

from __future__ import annotations

from penstock.client import Client
from penstock.engine import (
    DeadLetter,
    Declaration,
    Engine,
    Evaluation,
    Gap,
    LateEvent,
    Limits,
    MembersReport,
    PushReport,
    Query,
    QuerySet,
    QueryStatus,
    Solutions,
    Step,
    StreamWait,
    UpdateReport,
)
from penstock.errors import (
    ConflictError,
    DataError,
    DataPlaneError,
    LimitError,
    PenstockError,
    QueryError,
    QueryLimitError,
    StorageError,
    UnboundedStorageWarning,
    UnknownStreamError,
)
from penstock.query.parser import parse

__all__ = [
    "Client",
    "ConflictError",
    "DataError",
    "DataPlaneError",
    "DeadLetter",
    "Declaration",
    "Engine",
    "Evaluation",
    "Gap",
    "LateEvent",
    "LimitError",
    "Limits",
    "MembersReport",
    "PenstockError",
    "PushReport",
    "Query",
    "QueryError",
    "QueryLimitError",
    "QuerySet",
    "QueryStatus",
    "Solutions",
    "Step",
    "StorageError",
    "StreamWait",
    "UnboundedStorageWarning",
    "UnknownStreamError",
    "UpdateReport",
    "parse",
]
