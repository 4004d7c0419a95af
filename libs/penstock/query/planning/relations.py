"""Building blocks of plans: relations, scopes, and scans that may become forks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.datasets import Parts

Spec = dict[str, Any]
"""A node of the plan, or a part of one, in the format of docs/plan-format.md."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A plan node with the properties of its rows: names bound in every row, names possibly bound, expected rows.

    `pure_seed`: the node is only the seed, so that branches may start from their own copies. `factors`: the relations
    of which the rows are the cross product.
    """

    node: Spec
    certain: Names
    maybe: Names
    rows: float
    pure_seed: bool = False
    factors: tuple[Relation, ...] = ()

    @property
    def names(self) -> Names:
        """Every name with a column."""
        return self.certain | self.maybe


@dataclass(frozen=True, slots=True)
class Scope:
    """Where triple patterns are evaluated: parts of the dataset, and the graph variable that ranges over them."""

    parts: Parts
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan in plan format (without its input), the bound names that it uses, the names that it binds, and its
    expected rows.
    """

    members: dict[str, Any]
    label: str
    uses: frozenset[str]
    binds: frozenset[str]
    rows: float


@dataclass(frozen=True, slots=True)
class Chain:
    """Consecutive scans from the rows of `left` that all look up the variable `key`: the content of a fork."""

    left: Relation
    key: str
    scans: tuple[Scan, ...]
