"""The identity of the current Spark task, and retries within a task."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

from penstock.log import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 2.0


def task_number() -> int:
    """Return the number of the task's partition; 0 outside of Spark workers, as in tests."""
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.TaskContext.get()
    return 0 if context is None else int(context.partitionId())


def patiently(work: Callable[[], T], give_up_s: float) -> T:
    """Call `work` until it raises no TransientError, for at most `give_up_s` seconds. Spark's own retries do not
    suffice, because with a local master, the failure of one task fails the whole batch.
    """
    deadline = time.monotonic() + give_up_s
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return work()
        except TransientError:
            if time.monotonic() + pause_s > deadline:
                raise
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
