"""The place of a record, as users write it, and the error that names one."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from penstock.errors import DataError, StorageError
from penstock.log import Partition

if TYPE_CHECKING:
    from penstock.log import Message


class Place(NamedTuple):
    """Written `TOPIC:PARTITION:OFFSET`."""

    topic: str
    number: int
    offset: int

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return where a record is."""
        return cls(message.topic, message.partition, message.offset)

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return the place that a text names; DataError where it names none."""
        topic, _, rest = text.partition(":")
        number, _, offset = rest.partition(":")
        if not (topic and number.isdecimal() and offset.isdecimal() and len(rest) < 40):
            raise DataError(f"{text!r} is no place of a record: TOPIC:PARTITION:OFFSET")
        return cls(topic, int(number), int(offset))

    @property
    def partition(self) -> Partition:
        """The partition."""
        return Partition(self.topic, self.number)

    def __str__(self) -> str:
        """Return what `parsed` reads."""
        return f"{self.topic}:{self.number}:{self.offset}"


class UnreadableRecordError(StorageError):
    """A record of an internal topic that cannot be read. The service ends, and starts again once it is set aside."""

    def __init__(self, place: Place, why: str) -> None:
        self.place = place
        self.command = f"penstock quarantine {place}"
        super().__init__(
            f"topic {place.topic}, partition {place.number}, offset {place.offset} cannot be read: {why}. "
            f"To set the record aside: {self.command}"
        )
