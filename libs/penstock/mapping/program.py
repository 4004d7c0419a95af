"""The compiled form of a mapping: rules of typed instructions. They contain only constants, paths and numbers, so any
executor can run them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from penstock.mapping.json_path import Path

TermKind: TypeAlias = Literal["iri", "uri", "unsafe", "blank", "literal"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A value of a record. `source`: "path" of a JSON value, "column" of a CSV row; "key", "header" or "timestamp" of
    the message. `text`: the reference as the mapping has it, for errors. `name`: of a column or header.
    """

    source: Literal["path", "column", "key", "header", "timestamp"]
    text: str
    path: Path = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """An instruction that makes terms.

    parts: constant texts and references, which are joined. `template`: the values of the references are
    percent-encoded if the term is an IRI. `constant`: the term in N-Triples, if it does not depend on the record; then
    there are no parts. A blank node without parts and constant is a new one for each record. `place`: where the mapping
    has the instruction.
    """

    kind: TermKind
    parts: tuple[str | Reference, ...] = ()
    template: bool = False
    constant: str | None = None
    datatype: Term | None = None
    language: Term | None = None
    base: str | None = None
    place: str = ""


@dataclass(frozen=True, slots=True)
class Join:
    """An object that is the subject of rule number `parent`, for the records of that rule for which all pairs of
    `conditions` (child, parent) have a value in common.
    """

    parent: int
    conditions: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """Triples of each predicate with each object, in each graph. The constant of the default graph is empty."""

    predicates: tuple[Term, ...]
    objects: tuple[Term | Join, ...]
    graphs: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """Where a rule's records come from. `location`: the file as the mapping names it; empty: the message. `nulls`:
    texts of CSV cells that mean no value. `encoding` and `compression` are those of the file.
    """

    formulation: Literal["json", "csv"]
    location: str = ""
    nulls: tuple[str, ...] = ()
    encoding: str = "utf-8"
    compression: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The triples of the records at `iterator` in a source. `statements` are about the term `subject`."""

    name: str
    source: Source
    iterator: Path
    subject: Term
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled mapping."""

    rules: tuple[Rule, ...]

    @property
    def names_graphs(self) -> bool:
        """Whether a rule has a graph other than the default graph."""
        statements = (statement for rule in self.rules for statement in rule.statements)
        return any(graph.constant != "" for statement in statements for graph in statement.graphs)
