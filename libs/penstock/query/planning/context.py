"""What the planner of one query carries around: slots, node numbers, the dataset, estimates, sub-plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.query.catalogue import Catalogue
    from penstock.query.datasets import Parts, QueryDataset
    from penstock.query.ir import ContinuousQuery
    from penstock.query.planning.cardinality import Estimator
    from penstock.query.planning.forks import Chain
    from penstock.query.scope import Names

Spec = dict[str, Any]


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


@dataclass(slots=True)
class PlanContext:
    """Mutable state of planning one query. `hidden` names (member, parameters) are columns of every relation."""

    query: ContinuousQuery
    catalogue: Catalogue
    dataset: QueryDataset
    estimator: Estimator
    hidden: tuple[str, ...]
    member: str | None
    substituted: Names = frozenset()  # outer names that an EXISTS being planned sees as constants
    subplans: list[Spec] = field(default_factory=list)
    labels: dict[int, tuple[str, float]] = field(default_factory=dict)  # node id -> description, expected rows
    chains: dict[int, Chain] = field(default_factory=dict)  # by fork
    fragments: dict[int, str] = field(default_factory=dict)  # by fork: the plan of its steps, for nodes
    _slots: dict[str, int] = field(default_factory=dict)

    def slot(self, name: str) -> int:
        """The slot of a variable."""
        return self._slots.setdefault(name, len(self._slots))

    def fresh(self, kind: str) -> int:
        """A slot that no variable of the query has."""
        return self.slot(f"#{kind}{len(self._slots)}")

    @property
    def slots(self) -> int:
        """How many slots there are."""
        return len(self._slots)

    def member_slot(self) -> int | None:
        """The slot of the hidden member column, where the plan is a group's."""
        return self.slot(self.member) if self.member is not None else None

    def node(self, op: str, label: str, estimate: float, /, **members: Any) -> Spec:
        """A plan node with its number; `label` and `estimate` (rows) are what EXPLAIN shows."""
        number = len(self.labels)
        self.labels[number] = (label, estimate)
        return {"op": op, "id": number, **{key: value for key, value in members.items() if value is not None}}

    def seed(self) -> Relation:
        """The table of parameters: one row a member, or the unit row."""
        node = self.node("seed", "parameters" if self.hidden else "unit", 1.0)
        return Relation(node, frozenset(self.hidden), frozenset(), 1.0, pure_seed=True)

    def outer(self, rows: Relation) -> Relation:
        """The leaf of a correlated side: the rows of `rows`."""
        return Relation(self.node("outer", "rows of the left side", rows.rows), rows.certain, rows.maybe, rows.rows)
