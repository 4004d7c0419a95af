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
    the message. `text`: the reference as it is in the mapping, for errors. `name`: the name of the column or header.
    """

    source: Literal["path", "column", "key", "header", "timestamp"]
    text: str
    path: Path = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """An instruction that makes terms.

    `parts`: constant texts and references, whose values are concatenated. `template`: whether the values of references
    in an IRI are percent-encoded. `constant`: the term in N-Triples, if it does not depend on the record; then there
    are no parts. A blank node without parts and constant is a new one for each record. `place`: the position of the
    instruction in the mapping, for errors.
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
    """Objects that are subjects of another rule, whose number is `parent`. `conditions`: pairs (child, parent) of
    instructions. The first is applied to the record, the second to a record of the rule `parent`. The objects are the
    subjects of those parent records for which the two instructions of each pair have a value in common.
    """

    parent: int
    conditions: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """The triples of each predicate with each object, in each graph. For the default graph, the constant of the graph's
    term is empty.
    """

    predicates: tuple[Term, ...]
    objects: tuple[Term | Join, ...]
    graphs: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a rule's records. `location`: the file as the mapping names it; empty: the message. `nulls`: texts
    that mean "no value" in a CSV cell. `encoding` and `compression` are those of the file.
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
