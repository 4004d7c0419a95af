"""The state of the translation of a text: names, new variables, windows, depth."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Filter, Parameter, Variable
from penstock.query.syntax.ast_nodes import position
from penstock.query.text_faults import Fault

if TYPE_CHECKING:
    from lark import Token

    from penstock.query.algebra.tree import AggregateCall, Expr, Node
    from penstock.query.budget import Budget
    from penstock.query.ir import WindowClause
    from penstock.query.translation.names import Names

_LABELS = re.compile(r"_:([\w.·-]+)")

Scope = dict[str, Variable]
"""The in-scope variables of a pattern (SPARQL 1.1 §18.2.1), by name, in the order of the text."""


def labels_in(text: str) -> frozenset[str]:
    """Return a set of labels that contains all labels of blank nodes in a text."""
    return frozenset(label.rstrip(".") for label in _LABELS.findall(text)) if "_:" in text else frozenset()


@dataclass(slots=True)
class Pattern:
    """A translated group. `condition`: the FILTERs of the group. The FILTERs are separate, because an OPTIONAL uses the
    FILTERs as its join condition.
    """

    node: Node
    scope: Scope
    condition: Expr | None = None

    @property
    def filtered(self) -> Node:
        """The group with its FILTERs, as one pattern."""
        return self.node if self.condition is None else Filter(self.node, self.condition, self.condition.at)


@dataclass(slots=True)
class Context:
    """The state of one translation. `taken`: labels of blank nodes in the text. `any_function`: whether calls of
    unknown functions by IRI are accepted.
    """

    names: Names
    budget: Budget
    taken: frozenset[str] = frozenset()  # blank node labels in the text
    windows: dict[str, WindowClause] = field(default_factory=dict)
    computed_every_ms: int | None = None
    any_function: bool = False
    warnings: list[str] = field(default_factory=list)
    aggregates: dict[AggregateCall, Variable] | None = None  # set where aggregates are allowed
    parameters: frozenset[str] = frozenset()  # names of the declared parameters of a query set
    labels: dict[str, int] = field(default_factory=dict)  # blank node label -> the basic graph pattern it occurs in
    bgps: int = 0
    depth: int = 0
    _fresh: dict[str, int] = field(default_factory=dict)

    def enter(self, weight: int, at: int) -> None:
        """Enter `weight` levels of nesting at offset `at`. LimitFault if the nesting is too deep. To leave the levels,
        the caller subtracts `weight` from `depth`.
        """
        self.depth += weight
        budget = self.budget
        budget.spend(at)
        if self.depth > budget.limits.max_nesting:
            budget.exceeded("max_nesting", "the query is nested too deeply", at)

    def constant_or_variable(self, token: Token) -> Parameter | Variable:
        """Return the term for a variable at a place where a constant could stand. The term is a parameter if the
        variable is a declared parameter.
        """
        name, at = str(token[1:]), position(token)
        return Parameter.of(name, at) if name in self.parameters else Variable(name, at)

    def variable(self, token: Token) -> Variable:
        """Return the variable that a token names. The grammar allows only a variable at the token's place, not a
        constant. Raises Fault if the token names a declared parameter, because a parameter stands for a constant.
        """
        name, at = str(token[1:]), position(token)
        if name in self.parameters:
            raise Fault(f"{token} is a parameter, which cannot stand here: only where a vertex or a value could", at)
        return Variable(name, at)

    def fresh_label(self, kind: str) -> str:
        """Return a new blank node label that the text does not use."""
        while True:
            number = self._fresh.get(kind, 0)
            self._fresh[kind] = number + 1
            label = f"{kind}{number}"
            if label not in self.taken:
                return label

    def fresh(self, kind: str, at: int = -1) -> Variable:
        """Return a new variable, which answers do not contain."""
        return Variable(f"_:{self.fresh_label(kind)}", at)
