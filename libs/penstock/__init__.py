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
    UnavailableError,
    UnboundedStorageWarning,
    UnknownStreamError,
)
from penstock.mapping.encodings.registry_access import RegistryAccess
from penstock.query.parser import parse
from penstock.query.syntax.strider import StriderText, parse_strider

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
    "RegistryAccess",
    "Solutions",
    "Step",
    "StorageError",
    "StreamWait",
    "StriderText",
    "UnavailableError",
    "UnboundedStorageWarning",
    "UnknownStreamError",
    "UpdateReport",
    "parse",
    "parse_strider",
]
