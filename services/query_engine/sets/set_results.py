"""The records of the evaluations of a query set's members: a complete answer for each member that reports."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.engine.answers.avro.row_records import encode_members
from penstock.engine.answers.json_lines import json_line
from penstock.engine.answers.result_blocks import Evaluation
from penstock.engine.sets.steps import Step
from penstock.log import Record
from penstock.services.query_engine.result_sinks import MAX_LINE_BYTES, Evaluated
from penstock.services.query_engine.result_targets import evaluation_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.core._native import Ids
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.sets.set_member import SetMember
    from penstock.services.query_engine.result_sinks import ResultSinks
    from penstock.services.query_engine.result_targets import Place
    from penstock.wire import QueryRegistration


def member_records(sinks: ResultSinks, query_set: QueryRegistration, member: SetMember, block: Block) -> Evaluated:
    """Return the records of the members that report in a block. The key of a record is `NAME/KEY@TIME`."""
    if query_set.result_format == "avro":
        return _row_records(sinks, query_set, member, block)
    records = []
    name, place = query_set.name, sinks.place_of(query_set)
    for key, evaluation in Step(member, [block]).evaluations():
        line = partial(json_line, evaluation, name, member=key, complete=True)
        value = line()
        if len(value) > MAX_LINE_BYTES:
            value = line(f"the answer has {len(value)} bytes (MAX_LINE_BYTES is {MAX_LINE_BYTES})")
        record = Record(place.topic, value, f"{name}/{key}@{evaluation.time}".encode(), place.partition)
        records.append(sinks.accepted(record, name, line))
    return Evaluated(records, len(records))


def _row_records(sinks: ResultSinks, query_set: QueryRegistration, member: SetMember, block: Block) -> Evaluated:
    """Return the records in Avro."""
    numbers, keys = Step(member, [block]).reporting(block)
    answers = _MemberAnswers(
        query_set.name, sinks.place_of(query_set), block, dict(zip(numbers.tolist(), map(str, keys), strict=True))
    )
    records = [sinks.failed(answers, number) for number in sorted(block.errors)]
    answered = numbers[~np.isin(numbers, np.fromiter(block.errors, np.uint64))]
    if len(answered):
        records += sinks.rows(answers, answered)
    return Evaluated(records, len(numbers))


class _MemberAnswers(NamedTuple):
    """The evaluations of members of a query set (`Answers`). `keys`: the key of each member, by member number."""

    query_set: str
    place: Place
    block: Block
    keys: Mapping[int, str]

    def name(self, _: int) -> str:
        return self.query_set

    def key(self, member: int) -> bytes:
        return evaluation_key(f"{self.query_set}/{self.keys[member]}", self.block.reading.time)

    def line(self, member: int, error: str | None) -> bytes:
        evaluation = Evaluation(self.query_set, self.block, member)
        return json_line(evaluation, self.query_set, error, member=self.keys[member], complete=True)

    def encoded_rows(self, members: Ids) -> tuple[list[Record], Sequence[int]]:
        assert self.place.rows is not None
        keys = [self.keys[number] for number in members.tolist()]
        found = encode_members(self.block, self.query_set, keys, members, self.place.rows)
        return self.place.records(found.keys, found.values), found.counts
