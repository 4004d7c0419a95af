"""The audit log of a process without structured logs: JSON lines in a file that is created with mode 0600."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = ("user", "method", "path", "status", "address")


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"timestamp": at, "event": record.getMessage()} | {f: getattr(record, f) for f in FIELDS})


def write_to(path: Path) -> None:
    """Append the audit log to a file. The log has one line for each HTTP request that changes something. It also has
    one line for each refused request that would have changed something.

    Creates the file with mode 0600. StorageError if the file cannot be written.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
        handler = logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    handler.setFormatter(_JsonLines())
    logger = logging.getLogger("penstock.audit")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
