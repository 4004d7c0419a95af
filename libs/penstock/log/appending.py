"""The call `Writer.append` over several tries: a retry continues the call that failed, and repeats no record."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.log.port import Record


class Appending:
    """The records of the last call that is not acknowledged, and how many of them the producer has."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._submitted = 0

    def run(self, records: Sequence[Record], submit: Callable[[Record], None], flush: Callable[[], None]) -> None:
        """Submit the records that the producer does not have yet, and flush. Other records than those of the call that
        failed are a call of their own, behind what is in flight.
        """
        if not self._records or self._records != list(records):
            self._records, self._submitted = list(records), 0
        while self._submitted < len(self._records):
            submit(self._records[self._submitted])
            self._submitted += 1
        flush()
        self._records, self._submitted = [], 0
