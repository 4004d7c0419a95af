"""The templates of an update, with numbers in place of constants and variables (docs/adr/0088-prepared-texts.md).

Two updates that differ only in the constants of their templates have equal `QuadTemplates`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import BlankNode, Variable

if TYPE_CHECKING:
    from penstock.query.algebra.tree import Term
    from penstock.query.ir import Modify, Quad
    from penstock.query.templates import Constant


@dataclass(frozen=True, slots=True)
class QuadTemplates:
    """The templates of a `Modify`. `delete`, `insert`: four numbers for each quad: subject, predicate, object, graph.

    The number is 0 for the default graph, 2 * i + 1 for constant i, and 2 * i + 2 for column i. The columns are the
    columns of the pattern's query, followed by one column for each label of a blank node. `blanks`: the number of these
    labels. `graphs`: whether a graph is a variable.
    """

    delete: tuple[int, ...]
    insert: tuple[int, ...]
    blanks: int = 0
    graphs: bool = False


def templates_of(operation: Modify) -> tuple[QuadTemplates, tuple[Constant, ...]]:
    """Return the templates of an operation, and their constants."""
    constants: list[Constant] = []
    variables = len(operation.query.variables)
    columns = {variable.name: column for column, variable in enumerate(operation.query.variables)}
    blanks: dict[str, int] = {}

    def place(term: Term | None) -> int:
        if term is None:
            return 0
        if isinstance(term, Variable):
            return 2 * columns[term.name] + 2
        if isinstance(term, BlankNode):
            return 2 * blanks.setdefault(term.label, variables + len(blanks)) + 2
        constants.append(term)
        return 2 * len(constants) - 1

    def places(quads: tuple[Quad, ...]) -> tuple[int, ...]:
        found = [(*map(place, (t.subject, t.predicate, t.object)), place(graph)) for graph, t in quads]
        return tuple([each for quad in found for each in quad])

    delete, insert = places(operation.delete), places(operation.insert)
    graphs = any(isinstance(graph, Variable) for graph, _ in operation.delete + operation.insert)
    return QuadTemplates(delete, insert, len(blanks), graphs), tuple(constants)
