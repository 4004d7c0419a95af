"""The library: what `pip install penstock` gives."""

from __future__ import annotations

from penstock.client import Client
from penstock.engine import DeadLetter, Declaration, Engine, Evaluation, Gap, LateEvent, Limits, Query, Solutions
from penstock.errors import (
    DataError,
    DataPlaneError,
    LimitError,
    PenstockError,
    QueryError,
    StorageError,
    UnknownStreamError,
)
from penstock.query.parser import parse

__all__ = [
    "Client",
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
    "PenstockError",
    "Query",
    "QueryError",
    "Solutions",
    "StorageError",
    "UnknownStreamError",
    "parse",
]
