"""The state of the planner for one query: slots, node numbers, the dataset, estimates and sub-plans."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from penstock.query.algebra.scope import size
from penstock.query.planning.relations import Relation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.query.algebra.scope import Names
    from penstock.query.algebra.tree import Node
    from penstock.query.budget import Budget
    from penstock.query.catalogue import Catalogue
    from penstock.query.datasets import QueryDataset
    from penstock.query.ir import ContinuousQuery
    from penstock.query.planning.cost.cardinality import Estimator
    from penstock.query.planning.entailment.rewriting import Rewriter
    from penstock.query.planning.flatten import Element
    from penstock.query.planning.relations import Chain, Scope, Spec
    from penstock.query.planning.substitution import Substitution

_SIDES = ("in", "left", "right", "inner")
_NODE_BYTES = 3_072  # estimated size of an operator in Python and in the native module
_CELL_BYTES = 12  # estimated size per column of an operator
_MOST_SLOTS = 0xFFFF  # docs/plan-format.md
_LABEL = 2_000  # maximum length of an operator's EXPLAIN label, in characters
_SEARCHED_SIZE = 256  # maximum number of pattern nodes for an exhaustive search of join orders
_MOST_SEARCHES = 256  # maximum number of exhaustive searches per plan


class PatternCompiler(Protocol):
    """Plans the join of a relation with any pattern that can be correlated with the relation."""

    def __call__(self, context: PlanContext, node: Node, left: Relation, scope: Scope, /) -> Relation:
        """Return the join of `left` with the pattern `node`."""


@dataclass(slots=True)
class PlanContext:
    """The mutable state while one query is planned. `hidden`: the names of the member and the parameters, which are
    columns of every relation.
    """

    query: ContinuousQuery
    catalogue: Catalogue
    dataset: QueryDataset
    estimator: Estimator
    hidden: tuple[str, ...]
    member: str | None
    budget: Budget
    compile: PatternCompiler
    rewriter: Rewriter | None = None  # of a query with entailment
    substitution: Substitution | None = None  # of the EXISTS being planned
    numbers: Iterator[int] = field(default_factory=count)  # for names that renaming creates
    subplans: list[Spec] = field(default_factory=list)
    labels: dict[int, tuple[str, float]] = field(default_factory=dict)  # node id -> description, expected rows
    chains: dict[int, Chain] = field(default_factory=dict)  # by fork
    fragments: dict[int, str] = field(default_factory=dict)  # by fork: the plan that stores run for it
    _slots: dict[str, int] = field(default_factory=dict)
    _searches: int = 0
    _depths: list[int] = field(default_factory=list)  # by node: number of operators on its longest path to a leaf

    def slot(self, name: str) -> int:
        """Return the slot of a variable. A new name gets a new slot. LimitFault if the plan has too many variables."""
        slots = self._slots
        found = slots.get(name)
        if found is None:
            found = slots[name] = len(slots)
            if found > _MOST_SLOTS:
                self.budget.exceeded("max_variables", f"the plan has more than {_MOST_SLOTS:,} variables")
        return found

    def fresh(self, kind: str) -> int:
        """Return a new slot that belongs to no variable of the query."""
        return self.slot(f"#{kind}{len(self._slots)}")

    @property
    def substituted(self) -> Names:
        """The names that are substituted in the EXISTS that is being planned."""
        return frozenset() if self.substitution is None else self.substitution.names

    @property
    def slots(self) -> int:
        """The number of slots."""
        return len(self._slots)

    def may_search(self, elements: Sequence[Element]) -> bool:
        """Return whether the planner is allowed to compare all join orders of a group. The total size of the elements
        must be small, and a plan has at most _MOST_SEARCHES such searches. A call with elements of a small total size
        counts as a search.
        """
        if sum(size(element.pattern) for element in elements) > _SEARCHED_SIZE:
            return False
        self._searches += 1
        return self._searches <= _MOST_SEARCHES

    def member_slot(self) -> int | None:
        """Return the slot of the hidden member column; None if the plan is not for a group."""
        return self.slot(self.member) if self.member is not None else None

    def node(self, op: str, label: str, estimate: float, /, **members: Any) -> Spec:
        """Return a new plan node with operator `op`. EXPLAIN shows `label` and `estimate`, the expected number of rows.
        `members`: the node's other fields. A field with the value None is omitted. LimitFault if the plan becomes too
        large.
        """
        number = len(self.labels)
        label = label if len(label) <= _LABEL else f"{label[:_LABEL]}…"
        self.labels[number] = (label, estimate)
        depth = self._depth(members)
        self._depths.append(depth)
        self.budget.add_node(depth, _NODE_BYTES + len(label) + _CELL_BYTES * len(self._slots))
        return {"op": op, "id": number, **{key: value for key, value in members.items() if value is not None}}

    def _depth(self, members: Mapping[str, Any]) -> int:
        """Return the number of operators on the longest path from a node to a leaf. `members`: the fields of the
        node.
        """
        depths = self._depths
        below = [depths[members[side]["id"]] for side in _SIDES if side in members]
        below += [depths[branch["id"]] for branch in members.get("inputs", ())]
        return 1 + max(below, default=0)

    def seed(self) -> Relation:
        """Return the seed: the table with one row of parameters per member, or the unit table."""
        node = self.node("seed", "parameters" if self.hidden else "unit", 1.0)
        return Relation(node, frozenset(self.hidden), frozenset(), 1.0, pure_seed=True)

    def outer(self, rows: Relation) -> Relation:
        """Return the leaf of a correlated plan. The leaf reads the rows on the left of the plan. `rows` describes these
        rows.
        """
        return Relation(self.node("outer", "rows of the left side", rows.rows), rows.certain, rows.maybe, rows.rows)
