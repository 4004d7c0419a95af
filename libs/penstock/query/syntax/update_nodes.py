"""The syntax tree of updates (SPARQL 1.1 Update), before names are resolved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.syntax.ast_nodes import DatasetClause, GroupPattern, Prologue, TriplesBlock
    from penstock.query.syntax.plain_triples import PlainRun

_AT = field(default=-1, compare=False, repr=False)

QuadsSyntax: TypeAlias = "tuple[tuple[Token | None, TriplesBlock], ...]"
"""Blocks of triples, each with the name or variable of its graph (None outside of GRAPH)."""


@dataclass(frozen=True, slots=True)
class DataOperation:
    """INSERT DATA or DELETE DATA. `verb`: INSERT or DELETE. `plain`: triples that `PlainReader` read."""

    verb: str
    quads: QuadsSyntax
    plain: tuple[PlainRun, ...] = ()
    at: int = _AT


@dataclass(frozen=True, slots=True)
class TemplateClause:
    """The template of `INSERT {…}`, `DELETE {…}` or DELETE WHERE."""

    quads: QuadsSyntax
    at: int = _AT


@dataclass(frozen=True, slots=True)
class ModifyOperation:
    """DELETE {…} INSERT {…} WHERE {…} or DELETE WHERE {…}. In the first form, one of the two templates can be absent.
    `graph`: the graph of WITH.
    """

    delete: TemplateClause | None
    insert: TemplateClause | None
    where: GroupPattern
    graph: Token | None = None
    using: tuple[DatasetClause, ...] = ()
    at: int = _AT


@dataclass(frozen=True, slots=True)
class LoadOperation:
    """LOAD. `graph`: the graph of INTO GRAPH."""

    source: Token
    graph: Token | None
    silent: bool
    at: int = _AT


@dataclass(frozen=True, slots=True)
class GraphOperation:
    """CLEAR, DROP or CREATE. `target`: an IRI, or one of the keywords DEFAULT, NAMED and ALL."""

    verb: str
    target: Token
    silent: bool
    at: int = _AT


@dataclass(frozen=True, slots=True)
class TransferOperation:
    """ADD, MOVE or COPY. `source` and `target`: an IRI or the keyword DEFAULT."""

    verb: str
    source: Token
    target: Token
    silent: bool
    at: int = _AT


OperationSyntax: TypeAlias = DataOperation | ModifyOperation | LoadOperation | GraphOperation | TransferOperation


@dataclass(frozen=True, slots=True)
class UpdateText:
    """A complete update text: operations, each with its preceding prologue. A text can have no operations."""

    operations: tuple[tuple[Prologue, OperationSyntax], ...]
