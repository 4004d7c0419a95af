"""Runs a program on records, and returns their triples as N-Quads (ADR 83)."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import DataError
from penstock.mapping.json_path import all_values
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits
from penstock.mapping.program import Join
from penstock.mapping.term_makers import MakerFactory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from penstock.mapping.message_records import SourceMessage
    from penstock.mapping.program import Program, Rule, Source, Statement, Term
    from penstock.mapping.term_makers import Many, One

Records: TypeAlias = "Mapping[Source, Any]"
"""The JSON value, or the list of CSV rows, of each source."""
_Index: TypeAlias = "tuple[Sequence[Any], dict[tuple[str, ...], list[int]]]"
"""The records of a join's parent rule, and an index. The index maps the values of all join conditions to positions of
records.
"""
_Run: TypeAlias = "Callable[[Any, str, SourceMessage, _Output], None]"


class _Output:
    """The N-Quads lines from a document so far, and the join indexes of the document's records."""

    __slots__ = ("_left", "_scope", "joined", "lines", "matching", "number", "records")

    def __init__(self, records: Records, most: int, scope: str) -> None:
        self.records = records
        self.lines: list[str] = []
        self.matching: dict[int, _Index] = {}
        self.number = 0
        self.joined = 0
        self._left = most
        self._scope = scope

    def fresh(self) -> str:
        """Return the label of a new blank node."""
        self.number += 1
        return f"_:f{self._scope}{self.number}"

    def check(self, since: int) -> int:
        """Raise DataError if the lines exceed the limit. Return the number of lines. `since`: the number of lines at
        the previous check.
        """
        for line in self.lines[since:]:
            self._left -= len(line)
        if self._left < 0:
            raise DataError("the triples of the message exceed the limits expansion_mib and expansion_factor")
        return len(self.lines)


class Executor:
    """Runs one program. `text` is thread-safe."""

    def __init__(self, program: Program, limits: MappingLimits = MAPPING_LIMITS) -> None:
        self._program = program
        self._limits = limits
        self._make = MakerFactory(limits)
        self._iterators = {id(rule): all_values(rule.iterator, limits.max_values) for rule in program.rules}
        self._rules = [self._rule(rule) for rule in program.rules]

    def text(self, records: Records, message: SourceMessage, size: int, scope: str = "") -> bytes:
        """Return the triples of records as N-Quads. The records are from a message or from files. `size`: the size of
        the input in bytes, which determines the limit on the output. `scope`: part of the labels of new blank nodes.
        Calls with different scopes make different blank nodes. DataError if a path or term map fails, if a limit is
        exceeded, or if a text is not Unicode. The error names the path or term map.
        """
        output = _Output(records, self._limits.expanded_bytes(size), scope)
        try:
            self._run(records, message, output)
            return "".join(output.lines).encode()
        except UnicodeEncodeError as error:
            raise DataError(f"a text of the message is not Unicode: {error.reason}") from error

    def _run(self, records: Records, message: SourceMessage, output: _Output) -> None:
        checked = 0
        for rule, run in zip(self._program.rules, self._rules, strict=True):
            for record in self._of_rule(rule, records):
                run(record, message, output)
                if len(output.lines) - checked > _CHECKED:
                    checked = output.check(checked)
        output.check(checked)

    def _of_rule(self, rule: Rule, records: Records) -> Sequence[Any]:
        value = records[rule.source]
        if rule.source.formulation == "csv":
            return value  # type: ignore[no-any-return]
        if not rule.iterator:
            return (value,)
        try:
            return self._iterators[id(rule)](value)
        except DataError as error:
            raise DataError(f"iterator of {rule.name}: {error}") from error

    # ---- one rule
    def _rule(self, rule: Rule) -> Callable[[Any, SourceMessage, _Output], None]:
        subjects, subject = self._make.many(rule.subject), self._make.one(rule.subject)
        runs = [self._statement(statement) for statement in rule.statements]
        if _is_fresh(rule.subject):

            def with_blank(record: Any, message: SourceMessage, output: _Output) -> None:
                made = output.fresh()  # the statements can make further blank nodes
                for run in runs:
                    run(record, made, message, output)

            return with_blank
        if subject is not None:
            make = subject

            def with_one(record: Any, message: SourceMessage, output: _Output) -> None:
                found = make(record, message)
                if found is not None:
                    for run in runs:
                        run(record, found, message, output)

            return with_one

        def with_many(record: Any, message: SourceMessage, output: _Output) -> None:
            for found in subjects(record, message):
                for run in runs:
                    run(record, found, message, output)

        return with_many

    def _statement(self, statement: Statement) -> _Run:
        fast = self._fast(statement)
        if fast is not None:
            return fast
        predicates = [self._make.many(term) for term in statement.predicates]
        objects = [self._object(each) for each in statement.objects]
        graphs = [self._make.many(term) for term in statement.graphs]

        def run(record: Any, subject: str, message: SourceMessage, output: _Output) -> None:
            names = [name for make in predicates for name in make(record, message)]
            values = [value for make in objects for value in make(record, message, output)]
            named = dict.fromkeys(graph for make in graphs for graph in make(record, message))
            places = [f" {graph}" if graph else "" for graph in named] if graphs else [""]
            checked = len(output.lines)
            for name in names:
                for value in values:
                    output.lines += [f"{subject} {name} {value}{place} .\n" for place in places]
                    if len(output.lines) - checked > _CHECKED:
                        checked = output.check(checked)  # part of the lines are counted twice, in large messages only

        return run

    def _fast(self, statement: Statement) -> _Run | None:
        """Return a fast function for a statement with one constant predicate, one object and no graph. None for other
        statements.
        """
        if len(statement.predicates) != 1 or len(statement.objects) != 1 or statement.graphs:
            return None
        name, value = statement.predicates[0].constant, statement.objects[0]
        if name is None or isinstance(value, Join) or _is_fresh(value):
            return None
        make: One | None = self._make.one(value)
        if value.constant is not None:
            tail = f" {name} {value.constant} .\n"
            return lambda _, subject, __, output: output.lines.append(subject + tail)
        if make is None:
            return None
        one = make

        def run(record: Any, subject: str, message: SourceMessage, output: _Output) -> None:
            found = one(record, message)
            if found is not None:
                output.lines.append(f"{subject} {name} {found} .\n")

        return run

    # ---- objects
    def _object(self, value: Term | Join) -> Callable[[Any, SourceMessage, _Output], list[str]]:
        if isinstance(value, Join):
            return self._joined(value)
        if _is_fresh(value):

            def fresh(_: Any, __: SourceMessage, output: _Output) -> list[str]:
                return [output.fresh()]

            return fresh
        make = self._make.many(value)
        return lambda record, message, _: make(record, message)

    def _joined(self, join: Join) -> Callable[[Any, SourceMessage, _Output], list[str]]:
        parent = self._program.rules[join.parent]
        subjects = self._make.many(parent.subject)
        children: list[Many] = [self._make.many(child) for child, _ in join.conditions]
        parents: list[Many] = [self._make.many(term) for _, term in join.conditions]
        key = id(join)

        def texts(conditions: list[Many], record: Any, message: SourceMessage, output: _Output) -> Iterator[Any]:
            found = [dict.fromkeys(values(record, message)) for values in conditions]
            if len(found) > 1:
                count(prod(map(len, found)) - 1, output)  # so that few values do not have very many combinations
            return product(*found)

        def count(pairs: int, output: _Output) -> None:
            output.joined += max(pairs, 0)
            if output.joined > self._limits.max_joined:
                raise DataError(f"joins of more than {self._limits.max_joined} pairs of records (max_joined)")

        def index(message: SourceMessage, output: _Output) -> _Index:
            found = output.matching.get(key)
            if found is None:
                records = self._of_rule(parent, output.records)
                found = output.matching[key] = records, {}
                for number, record in enumerate(records):
                    for each in texts(parents, record, message, output):
                        found[1].setdefault(each, []).append(number)
            return found

        def objects(record: Any, message: SourceMessage, output: _Output) -> list[str]:
            records, matching = index(message, output)
            chosen: set[int] = set()
            for each in texts(children, record, message, output):
                these = matching.get(each, ())
                count(len(these), output)
                chosen.update(these)
            return [subject for n in sorted(chosen) for subject in subjects(records[n], message)]

        return objects


def _is_fresh(term: Term) -> bool:
    return term.kind == "blank" and not term.parts and term.constant is None


_CHECKED = 1_000  # lines between two checks of their size
