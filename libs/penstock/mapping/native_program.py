"""Passes a program to the native executor (ADR 84), if the native executor supports all instructions of the program.

For each message, the native executor either makes exactly the triples of `Executor`, or declines the message. For
example, it declines messages that cannot be mapped. It supports neither joins nor references to the key and the headers
of a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.core._native import MappingProgram
from penstock.mapping.program import Join

if TYPE_CHECKING:
    from penstock.mapping.json_path import Path
    from penstock.mapping.mapping_limits import MappingLimits
    from penstock.mapping.program import Program, Reference, Statement, Term


class _Unsupported(Exception):  # noqa: N818 - not an error
    """The native executor cannot execute an instruction."""


def native_program(
    program: Program,
    format: str,  # noqa: A002 - as in the declaration
    events: Path,
    time: tuple[Reference, str] | None,
    nulls: tuple[str, ...],
    limits: MappingLimits,
    *,
    of_file: bool = False,
) -> MappingProgram | None:
    """Return the native form of a program, for messages in a format. None if the native executor does not support the
    program. `time`: the reference to the event time and the unit of this time. None: events have the timestamps of
    their messages. `of_file`: whether the texts are from files. Records of files need no time, and records without
    triples are skipped.
    """
    try:
        spec = {
            "format": format,
            "of_file": of_file,
            "events": _path(events),
            "time": None if time is None else {"reference": _part(time[0]), "unit": time[1]},
            "nulls": list(nulls),
            "rules": [
                {
                    "iterator": _path(rule.iterator),
                    "subject": _term(rule.subject),
                    "statements": [_statement(statement) for statement in rule.statements],
                }
                for rule in program.rules
            ],
            "max_depth": limits.max_json_depth,
            "max_values": limits.max_values,
            "max_bytes": limits.expanded_bytes(0),
            "max_factor": limits.expansion_factor,
        }
        return MappingProgram(spec)
    except (_Unsupported, UnicodeEncodeError):  # a name can have a surrogate, which no message in UTF-8 has
        return None


def _path(path: Path) -> list[Any]:
    return [
        step if step is None or isinstance(step, str) else {"index": step} if step >= 0 else {"from_end": -step}
        for step in path
    ]


def _part(part: str | Reference) -> Any:
    if isinstance(part, str):
        return part
    match part.source:
        case "path":
            return {"path": _path(part.path)}
        case "column":
            return {"column": part.name}
        case "timestamp":
            return {"timestamp": True}
        case _:
            raise _Unsupported


def _term(term: Term) -> dict[str, Any]:
    if term.constant is not None:
        return {"kind": term.kind, "constant": term.constant}
    return {
        "kind": term.kind,
        "parts": [_part(part) for part in term.parts],
        "template": term.template,
        "datatype": None if term.datatype is None else _term(term.datatype),
        "language": None if term.language is None else _term(term.language),
        "base": term.base,
    }


def _statement(statement: Statement) -> dict[str, Any]:
    objects = []
    for value in statement.objects:
        if isinstance(value, Join):
            raise _Unsupported
        objects.append(_term(value))
    return {"predicates": [_term(term) for term in statement.predicates], "objects": objects}
