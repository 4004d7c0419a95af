"""The values that planning functions exchange: relations, scopes, and scans that can become forks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import TypeAlias

    from penstock.query.algebra.scope import Names
    from penstock.query.algebra.tree import Iri
    from penstock.query.datasets import Parts

    Directed: TypeAlias = tuple[Iri, bool]
    """A predicate, and whether its triples are matched from object to subject."""

Spec = dict[str, Any]
"""A node of a plan, or a part of a node, in the format of docs/plan-format.md."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A plan node, and the properties of its rows.

    - `certain`: names that are bound in every row.
    - `maybe`: names that are bound in some rows.
    - `rows`: expected number of rows.
    - `pure_seed`: whether the rows are the rows of the seed, or of the seed's cross product with graphs. Each branch of
    a UNION can then start from its own copy of the rows.
    - `factors`: if the rows are a cross product of relations, these relations.
    """

    node: Spec
    certain: Names
    maybe: Names
    rows: float
    pure_seed: bool = False
    factors: tuple[Relation, ...] = ()

    @property
    def names(self) -> Names:
        """The names of all columns."""
        return self.certain | self.maybe


@dataclass(frozen=True, slots=True)
class Scope:
    """The place where triple patterns are evaluated: the parts of the dataset and, if a graph variable ranges over
    these parts, the variable.
    """

    parts: Parts
    variable: str | None = None


@dataclass(frozen=True, slots=True)
class Choices:
    """What a scan can have in addition to a triple pattern.

    - `predicates`: the predicates whose triples the scan matches as a set, instead of the triples of the pattern's
    predicate.
    - `omitted`: the name of an end that is not bound and not output. For each value of the other positions, the scan
    tests whether a match exists.
    - `among`: the possible values of the omitted end. () for any value.
    """

    predicates: tuple[Directed, ...] = ()
    omitted: str | None = None
    among: tuple[int, ...] = ()


NO_CHOICES = Choices()


@dataclass(frozen=True, slots=True)
class Scan:
    """A scan.

    - `members`: the scan's fields in plan format, without the input.
    - `uses`: names that are bound before the scan and that the scan uses.
    - `binds`: names that the scan binds.
    - `rows`: expected number of rows.
    """

    members: dict[str, Any]
    label: str
    uses: frozenset[str]
    binds: frozenset[str]
    rows: float


@dataclass(frozen=True, slots=True)
class Chain:
    """Consecutive scans that start from the rows of `left` and all look up the variable `key`. A fork consists of such
    a chain.
    """

    left: Relation
    key: str
    scans: tuple[Scan, ...]
