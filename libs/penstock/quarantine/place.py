"""The position of a record, and the error for a record that cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from penstock.errors import DataError, StorageError
from penstock.log import Partition

if TYPE_CHECKING:
    from penstock.log import Message


class Place(NamedTuple):
    """The position of a record. Its text is `TOPIC:PARTITION:OFFSET`."""

    topic: str
    number: int
    offset: int

    @classmethod
    def of(cls, message: Message) -> Self:
        """Return the position of a message."""
        return cls(message.topic, message.partition, message.offset)

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Parse a position. DataError if it is malformed."""
        topic, _, rest = text.partition(":")
        number, _, offset = rest.partition(":")
        if not (topic and number.isdecimal() and offset.isdecimal() and len(rest) < 40):
            raise DataError(f"{text!r} is not the position of a record (TOPIC:PARTITION:OFFSET)")
        return cls(topic, int(number), int(offset))

    @property
    def partition(self) -> Partition:
        """The partition of the record."""
        return Partition(self.topic, self.number)

    def __str__(self) -> str:
        """Return the text that `parsed` accepts."""
        return f"{self.topic}:{self.number}:{self.offset}"


class UnreadableRecordError(StorageError):
    """A record of an internal topic cannot be decoded. The service stops. When the record is in quarantine, the service
    can be restarted and continues. `command`: the command that puts the record into quarantine.
    """

    def __init__(self, place: Place, why: str) -> None:
        self.place = place
        self.command = f"penstock quarantine {place}"
        super().__init__(
            f"topic {place.topic}, partition {place.number}, offset {place.offset} cannot be read: {why}. "
            f"To set the record aside: {self.command}"
        )
