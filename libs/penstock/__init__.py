"""The library: what `pip install penstock` gives."""

from __future__ import annotations

from penstock.errors import (
    DataError,
    LimitError,
    PenstockError,
    QueryError,
    StorageError,
    UnknownStreamError,
)
from penstock.query.parser import parse

__all__ = [
    "DataError",
    "LimitError",
    "PenstockError",
    "QueryError",
    "StorageError",
    "UnknownStreamError",
    "parse",
]
