"""Removal of type patterns that other patterns of a group imply. A plan need not look up these types (ADR 93)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Call, Iri, Triple, Variable
from penstock.query.algebra.vocabulary import TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.query.algebra.tree import Expr, Term
    from penstock.query.planning.entailment.rewriting import Rewriter


def without_implied(patterns: Iterable[Triple], rewriter: Rewriter) -> tuple[tuple[Triple, ...], tuple[Expr, ...]]:
    """Remove implied types from a basic graph pattern. Returns the other patterns, and conditions that must be tested
    in addition. A type `x a C` is implied if other patterns of the basic graph pattern entail this type. If the type
    follows only from the range of a property, a condition tests that `x` is not a literal, because a literal has no
    type.
    """
    retained = list(patterns)
    conditions: list[Expr] = []
    for pattern in [pattern for pattern in retained if _is_type(pattern)]:
        others = [other for other in retained if other is not pattern]
        assert isinstance(pattern.object, Iri)
        ways = {way for other in others for way in _ways(other, pattern.subject, pattern.object, rewriter)}
        if not ways:
            continue
        retained = others
        if False not in ways and isinstance(pattern.subject, Variable):
            literal = Call("isliteral", (pattern.subject,), at=pattern.at)
            conditions.append(Call("not", (literal,), at=pattern.at))
    return tuple(retained), tuple(conditions)


def _is_type(pattern: Triple) -> bool:
    predicate = pattern.predicate
    return isinstance(predicate, Iri) and predicate.value == TYPE and isinstance(pattern.object, Iri)


def _ways(pattern: Triple, term: Term, class_: Iri, rewriter: Rewriter) -> list[bool]:
    """Return the end at which `term` stands in a pattern, if the pattern entails that `term` has the class `class_`.
    The result is [False] for the subject, [True] for the object, and [] if the pattern does not entail the class.
    """
    if not isinstance(pattern.predicate, Iri):
        return []
    if pattern.subject == term and (
        rewriter.gives_type(pattern.predicate, class_, at_object=False)
        or (_is_type(pattern) and isinstance(pattern.object, Iri) and rewriter.is_below(pattern.object, class_))
    ):
        return [False]
    if pattern.object == term and rewriter.gives_type(pattern.predicate, class_, at_object=True):
        return [True]
    return []
