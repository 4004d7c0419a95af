"""Error messages of failed Spark jobs, without JVM stack frames."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CAUSES = 20
_MAX_CHARACTERS = 2_000
_FRAMES = ("at ", "File ", "==", "JVM", "Driver stacktrace", "Traceback", "...")


@contextmanager
def job(name: str) -> Iterator[None]:
    """Replace the error of a failed job in the `with` block by a StorageError. This error has the operation and the
    root cause.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except Py4JJavaError as error:
        raise StorageError(f"{name}: {_reason(error.java_exception)}") from error
    except PySparkException as error:
        raise StorageError(f"{name}: {without_frames(str(error))}") from error


def _reason(exception: Any) -> str:
    """Return the last two causes of an exception: the operation and its failure."""
    causes: list[str] = []
    while exception is not None and len(causes) < _MAX_CAUSES:
        causes.append(without_frames(exception.getMessage() or str(exception)))
        exception = exception.getCause()
    return ": ".join(dict.fromkeys(causes[-2:]))


def without_frames(text: str) -> str:
    """Return a stack trace without its frames, on one line."""
    lines = (line.strip() for line in text.splitlines())
    return " ".join(line for line in lines if line and not line.startswith(_FRAMES))[:_MAX_CHARACTERS]
