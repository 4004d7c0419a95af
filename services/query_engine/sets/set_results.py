"""The records of the evaluations of a query set's members: a complete answer for each member that reports."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from penstock.engine.answers.json_lines import json_line
from penstock.engine.sets.steps import Step
from penstock.log import Record
from penstock.services.query_engine.result_sinks import MAX_LINE_BYTES, Evaluated

if TYPE_CHECKING:
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.sets.set_member import SetMember
    from penstock.services.query_engine.result_sinks import ResultSinks
    from penstock.wire import QueryRegistration


def member_records(sinks: ResultSinks, query_set: QueryRegistration, member: SetMember, block: Block) -> Evaluated:
    """Return the records of the members that report in a block. The key of a record is `NAME/KEY@TIME`."""
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
