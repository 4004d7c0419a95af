"""What a function may know of the task that runs it."""

from __future__ import annotations

import sys


def task_number() -> int:
    """Return the partition's number; 0 outside of Spark's workers, where tests call such functions."""
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else pyspark.TaskContext.get()
    return 0 if context is None else int(context.partitionId())
