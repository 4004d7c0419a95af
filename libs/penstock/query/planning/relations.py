"""Values that plans are made of: relations, scopes, and scans that may become forks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.algebra.scope import Names
    from penstock.query.datasets import Parts

Spec = dict[str, Any]
"""A node of the plan, or a part of one, as docs/plan-format.md has it."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A plan node with what is known of its rows: names bound in every row, names perhaps bound, expected rows.

    `pure_seed`: nothing but the seed so far, so that branches may start from their own copy of it. `factors`: where the
    rows are all pairs of rows of other relations, those.
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
    """Where triple patterns look: parts of the dataset, and the graph variable that ranges over them."""

    parts: Parts
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan as the plan writes it (without its input), what it binds, and how many rows come out of it."""

    members: dict[str, Any]
    label: str
    uses: frozenset[str]
    binds: frozenset[str]
    rows: float


@dataclass(frozen=True, slots=True)
class Chain:
    """Scans that look up `key`, over the rows of `left`."""

    left: Relation
    key: str
    scans: tuple[Scan, ...]
