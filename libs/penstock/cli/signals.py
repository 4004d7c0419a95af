"""Signals that end a command with an orderly shutdown."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt, like Ctrl-C. Repeated signals do not interrupt the shutdown."""

    def interrupt(*_: object) -> None:
        for each in _ENDING:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {each: signal.signal(each, interrupt) for each in _ENDING}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
