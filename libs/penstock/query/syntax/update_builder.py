"""Builds the syntax tree of updates: one method per rule or alias of grammar/sparql.lark (see builder.py)."""

# ruff: noqa: D102 - each method is the grammar rule of its name

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.query.syntax.ast_nodes import DatasetClause, GraphPattern, GroupPattern, TriplesBlock, position
from penstock.query.syntax.update_nodes import (
    DataOperation,
    GraphOperation,
    LoadOperation,
    ModifyOperation,
    QuadsSyntax,
    TemplateClause,
    TransferOperation,
    UpdateText,
)

if TYPE_CHECKING:
    from lark import Token

Children: TypeAlias = list[Any]


class UpdateBuilder:
    """The grammar's callbacks for updates."""

    def update_request(self, c: Children) -> UpdateText:
        return UpdateText(tuple(zip(c[::2], c[1::2], strict=False)))

    # ---- graphs as a whole
    def load(self, c: Children) -> LoadOperation:
        return LoadOperation(c[2], c[-1], c[1] is not None, position(c[0]))

    def clear(self, c: Children) -> GraphOperation:
        return GraphOperation(c[0].type, c[-1], c[1] is not None, position(c[0]))

    drop = create = clear

    def add(self, c: Children) -> TransferOperation:
        return TransferOperation(c[0].type, c[2], c[4], c[1] is not None, position(c[0]))

    move = copy = add

    def graph_name(self, c: Children) -> Token:
        name: Token = c[1]
        return name

    # ---- triples
    def data_operation(self, c: Children) -> DataOperation:
        return DataOperation(c[0].type, c[2], at=position(c[0]))

    def delete_where(self, c: Children) -> ModifyOperation:
        """Build DELETE WHERE. Its template is also its pattern."""
        start, _, brace, quads = c
        where = GroupPattern(tuple(_pattern(name, block) for name, block in quads), position(brace))
        return ModifyOperation(TemplateClause(quads, position(start)), None, where, at=position(start))

    def delete_operation(self, c: Children) -> ModifyOperation:
        _, graph, delete, insert, *using, _, where = c
        return ModifyOperation(delete, insert, where, graph, tuple(using), delete.at)

    def insert_operation(self, c: Children) -> ModifyOperation:
        _, graph, insert, *using, _, where = c
        return ModifyOperation(None, insert, where, graph, tuple(using), insert.at)

    def template_clause(self, c: Children) -> TemplateClause:
        return TemplateClause(c[1], position(c[0]))

    def using_default(self, c: Children) -> DatasetClause:
        return DatasetClause(c[1], at=position(c[0]))

    def using_named(self, c: Children) -> DatasetClause:
        return DatasetClause(c[2], named=True, at=position(c[0]))

    def quads(self, c: Children) -> QuadsSyntax:
        return tuple((None, part) if isinstance(part, TriplesBlock) else part for part in c)

    def quads_not_triples(self, c: Children) -> tuple[Token, TriplesBlock]:
        return c[1], c[2] if len(c) > 2 else TriplesBlock(())


def _pattern(name: Token | None, block: TriplesBlock) -> GraphPattern | TriplesBlock:
    return block if name is None else GraphPattern(name, GroupPattern((block,), block.at), position(name))
