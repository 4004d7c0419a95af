"""The compiled form of a mapping: rules of typed instructions. The instructions contain only constants, paths and
numbers. Therefore, executors in different languages can run them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from penstock.mapping.json_path import Path

TermKind: TypeAlias = Literal["iri", "uri", "unsafe", "blank", "literal"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference to a value.

    - `source`: where the value is. "path" is a path in a JSON record, and "column" is a column of a CSV row. "key",
    "header" and "timestamp" are parts of the message.
    - `text`: the text of the reference in the mapping, for errors.
    - `name`: the name of the column or header.
    """

    source: Literal["path", "column", "key", "header", "timestamp"]
    text: str
    path: Path = ()
    name: str = ""


@dataclass(frozen=True, slots=True)
class Term:
    """An instruction that makes terms.

    - `parts`: constant texts and references, whose values are concatenated.
    - `template`: whether the values of references in an IRI are percent-encoded.
    - `constant`: the term in N-Triples, if the term does not depend on the record. `parts` is then empty. A blank node
      with neither parts nor a constant is a new blank node for each record.
    - `place`: the position of the instruction in the mapping, for errors.
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
    """Objects that are subjects of another rule. `parent`: the number of the other rule. `conditions`: pairs (child,
    parent) of instructions. The child instruction computes values of the record, and the parent instruction computes
    values of a record of the other rule. A parent record matches if the two instructions of each pair have a value in
    common. The objects are the subjects of the matching parent records.
    """

    parent: int
    conditions: tuple[tuple[Term, Term], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """The triples of each predicate with each object, in each graph. A graph term whose constant is empty means the
    default graph.
    """

    predicates: tuple[Term, ...]
    objects: tuple[Term | Join, ...]
    graphs: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a rule's records.

    - `location`: the file name in the mapping. An empty string means that the message itself is the source.
    - `nulls`: texts that mean "no value" in a CSV cell.
    - `encoding`, `compression`: the encoding and the compression of the file.
    """

    formulation: Literal["json", "csv"]
    location: str = ""
    nulls: tuple[str, ...] = ()
    encoding: str = "utf-8"
    compression: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule for the records at the path `iterator` in a source. `subject`: the subject of all triples of
    `statements`.
    """

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
