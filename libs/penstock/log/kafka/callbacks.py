"""Raises exceptions from librdkafka's callbacks in the caller of the client."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def unmasked() -> Iterator[None]:
    """Raise the exception of the first callback that failed.

    A fatal error of the client, or a signal, raises an exception in a callback. librdkafka can call further callbacks
    before it returns. Python then raises a SystemError ("returned a result with an exception set"). The cause of this
    SystemError is the first exception.
    """
    try:
        yield
    except SystemError as error:
        first: BaseException = error
        while isinstance(first, SystemError) and first.__cause__ is not None:
            first = first.__cause__
        if first is error:
            raise
        raise first from None
