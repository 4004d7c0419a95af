"""Retries of `Writer.append`. A retry continues the failed call and writes no record twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.log.port import Record


class Appending:
    """The records of the last unacknowledged call, and how many of these records the producer has accepted."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._submitted = 0

    def run(self, records: Sequence[Record], submit: Callable[[Record], None], flush: Callable[[], None]) -> None:
        """Submit the records that the producer has not accepted yet, and flush.

        If the last call failed and `records` are the same, this call continues the failed call. Other records start a
        new call. The flush of the new call also waits for earlier records in flight.
        """
        if not self._records or self._records != list(records):
            self._records, self._submitted = list(records), 0
        while self._submitted < len(self._records):
            submit(self._records[self._submitted])
            self._submitted += 1
        flush()
        self._records, self._submitted = [], 0
