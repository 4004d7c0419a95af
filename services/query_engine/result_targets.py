"""The topic and partition to which the records of evaluations are written, and the format of these records."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from penstock.engine.answers.avro.row_records import RowFormat, encode_rows, error_value
from penstock.engine.answers.evaluation_records import FORMAT_HEADER, RecordNames, encode
from penstock.engine.answers.json_lines import json_line
from penstock.engine.answers.result_blocks import Evaluation
from penstock.log import Record
from penstock.log.sizes import wire_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import TypeAlias

    from penstock.core._native import Ids
    from penstock.engine.answers.evaluation_records import RecordFormat
    from penstock.engine.answers.membership import Membership
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.standing.groups import Member
    from penstock.log.port import Headers
    from penstock.replication.registration import Registration
    from penstock.wire import QueryRegistration

    Queries: TypeAlias = Mapping[str, tuple[Member, Registration]]

_TIME_BYTES = 21  # upper bound for the part of a key that follows the name


class Place(NamedTuple):
    """The topic and partition of records of evaluations, and the format of these records. `rows`: how records in Avro
    are written; None for other formats.
    """

    topic: str
    partition: int
    record_format: RecordFormat
    rows: RowFormat | None = None

    @property
    def headers(self) -> Headers:
        """The headers of the records."""
        return () if self.record_format == "json" else ((FORMAT_HEADER, self.record_format.encode()),)

    def record(self, value: bytes, key: bytes) -> Record:
        """Return the record of a single evaluation, in Avro or JSON."""
        return Record(self.topic, value, key, self.partition, headers=() if self.rows is None else self.headers)

    def records(self, keys: Sequence[bytes], values: Sequence[bytes]) -> list[Record]:
        """Return records in the format of the place."""
        return list(map(Record, repeat(self.topic), values, keys, repeat(self.partition), repeat(self.headers)))

    def failure(self, line: bytes, key: bytes) -> Record:
        """Return the record of an evaluation with an error. `line`: the evaluation as JSON."""
        return self.record(line if self.rows is None else error_value(line, self.rows), key)


def row_format_of(query: QueryRegistration) -> RowFormat:
    """Return the row format of a query whose results are in Avro."""
    return RowFormat(query.schema_id, query.row_types, query.report is not None)


class Routes:
    """The places of the evaluations of a block's members. `places`: pairs of a place and the member numbers, ascending,
    of the evaluations for this place. `queries`: the registrations by member number. `key_bytes`: an upper bound of the
    size of a key.
    """

    def __init__(self, members: Membership, queries: Queries, place: Callable[[QueryRegistration], Place]) -> None:
        self.queries: dict[int, QueryRegistration] = {}
        names: list[str] = []
        places: dict[Place, list[int]] = {}
        for number, member in enumerate(members.all, 1):
            found = None if member is None else queries.get(member.name)
            names.append("" if found is None else found[1].record.name)
            if found is not None:
                self.queries[number] = found[1].record
                places.setdefault(place(found[1].record), []).append(number)
        self.names = RecordNames(names)
        self.key_bytes = max((len(name.encode()) for name in names), default=0) + _TIME_BYTES
        self.places = [(place, np.array(numbers, np.uint64)) for place, numbers in places.items()]


class Answers(Protocol):
    """The evaluations of several members at one instant. The records of all these evaluations go to the same topic and
    partition, in the same format (see `Place`).
    """

    @property
    def place(self) -> Place:
        """The place of the records."""

    def name(self, member: int) -> str:
        """Return the name of a member's query, or of its query set."""

    def key(self, member: int) -> bytes:
        """Return the key of a member's record."""

    def line(self, member: int, error: str | None) -> bytes:
        """Return a failed evaluation as a line of JSON. `error`: the error, or None if the block contains the error."""

    def encoded_rows(self, members: Ids) -> tuple[list[Record], Sequence[int]]:
        """Return the records of members' answers in Avro, and each member's number of records. LimitError if a term
        does not have the type of its field.
        """


class Target(NamedTuple):
    """The evaluations of a block that go to one place. `complete`: see `ResultSinks.records`."""

    block: Block
    routes: Routes
    place: Place
    complete: set[int]

    @property
    def envelope(self) -> int:
        """An upper bound of the size in bytes of a record without its value."""
        return wire_bytes(Record(self.place.topic, b"", b"", headers=self.place.headers)) + self.routes.key_bytes

    def begins(self, members: Ids) -> tuple[int, ...]:
        """Return the members whose record must have the complete answer in place of changes. Updates `complete`."""
        if self.block.changes is None:
            return ()
        numbers = {n: self.routes.queries[n].number for n in members.tolist()}
        found = tuple(n for n, number in numbers.items() if number not in self.complete)
        self.complete.update(numbers.values())
        return found

    def encoded(self, members: Ids, most: int, begins: Collection[int]) -> tuple[list[Record], Sequence[int], int]:
        """Return the records of members' answers, the number of evaluations in each record, and the total size of the
        records' values in bytes.
        """
        found = encode(self.block, self.routes.names, members, self.place.record_format, most, begins)
        return self.place.records(found.keys, found.values), found.counts, sum(map(len, found.values))

    # ---- `Answers`
    def encoded_rows(self, members: Ids) -> tuple[list[Record], Sequence[int]]:
        """Return the records of members' answers in Avro, and each member's number of records."""
        assert self.place.rows is not None
        found = encode_rows(self.block, self.routes.names.native, members, self.place.rows)
        return self.place.records(found.keys, found.values), found.counts

    def name(self, member: int) -> str:
        """Return the name of a member's query."""
        return self.routes.queries[member].name

    def key(self, member: int) -> bytes:
        """Return the key of a member's record."""
        return evaluation_key(self.name(member), self.block.reading.time)

    def line(self, member: int, error: str | None) -> bytes:
        """Return a failed evaluation as a line of JSON. `error`: the error, or None if the block contains the error."""
        name = self.name(member)
        return json_line(Evaluation(name, self.block, member), name, error)


def evaluation_key(query: str, time: int) -> bytes:
    """Return the key of the record of an evaluation."""
    return f"{query}@{time}".encode()
