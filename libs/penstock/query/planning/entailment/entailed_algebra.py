"""The algebra of a query with entailment: property paths, and types that need no look-up (ADR 93).

Paths of links, inverses, sequences and alternatives become triple patterns. Each of these patterns is then rewritten. A
path with `*`, `+` or `?` stays a path, and its solutions are a set. In such a path, each link is replaced by an
alternative of all predicates that entail the link.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import (
    Alternative,
    Bgp,
    Call,
    Exists,
    Filter,
    Inverse,
    Join,
    Link,
    OneOrMore,
    PathTriple,
    Sequence,
    Triple,
    Union,
    Variable,
    ZeroOrMore,
    ZeroOrOne,
)
from penstock.query.algebra.walk import rebuild
from penstock.query.planning.entailment.implied_types import without_implied

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.query.algebra.tree import Expr, Node, Path, Term
    from penstock.query.planning.entailment.rewriting import Rewriter


def with_entailed_patterns(node: Node, rewriter: Rewriter, numbers: Iterator[int]) -> Node:
    """Return a pattern for the entailed graph. Its paths are translated, and types that other patterns imply are
    omitted.
    """

    def inner(old: Node) -> Node:
        if not isinstance(old, Bgp):
            return rebuild(old, inner, expr)
        paths = [pattern for pattern in old.patterns if isinstance(pattern, PathTriple)]
        triples = [pattern for pattern in old.patterns if isinstance(pattern, Triple)]
        retained, conditions = without_implied(triples, rewriter)
        if len(retained) == len(old.patterns):
            return old
        found: Node = Bgp(retained, old.at)
        for condition in conditions:
            found = Filter(found, condition, old.at)
        for pattern in paths:
            expanded = _expanded(pattern.subject, pattern.path, pattern.object, pattern.at, rewriter, numbers)
            found = Join(found, expanded, old.at)
        return found

    def expr(old: Expr) -> Expr:
        if isinstance(old, Exists):
            return replace(old, pattern=inner(old.pattern))
        return replace(old, args=tuple(map(expr, old.args))) if isinstance(old, Call) else old

    return inner(node)


def _expanded(subject: Term, path: Path, target: Term, at: int, rewriter: Rewriter, numbers: Iterator[int]) -> Node:
    match path:
        case Link():
            return Bgp((Triple(subject, path.iri, target, at),), at)
        case Inverse():
            return _expanded(target, path.path, subject, at, rewriter, numbers)
        case Alternative():
            return Union(tuple(_expanded(subject, part, target, at, rewriter, numbers) for part in path.parts), at)
        case Sequence():
            found: Node | None = None
            for part in path.parts[:-1]:
                between = Variable(f"_:e#{next(numbers)}", at)
                step = _expanded(subject, part, between, at, rewriter, numbers)
                found, subject = step if found is None else Join(found, step, at), between
            last = _expanded(subject, path.parts[-1], target, at, rewriter, numbers)
            return last if found is None else Join(found, last, at)
        case _:
            return Bgp((PathTriple(subject, _entailed(path, rewriter), target, at),), at)


def _entailed(path: Path, rewriter: Rewriter) -> Path:
    """Return a path inside `*`, `+` or `?`, with each link replaced by the predicates that entail the link."""
    match path:
        case Link():
            links = tuple(
                Inverse(Link(name)) if inverse else Link(name) for name, inverse in rewriter.predicates(path.iri)
            )
            return links[0] if len(links) == 1 else Alternative(links)
        case Inverse() | ZeroOrMore() | OneOrMore() | ZeroOrOne():
            return replace(path, path=_entailed(path.path, rewriter))
        case Sequence() | Alternative():
            return replace(path, parts=tuple(_entailed(part, rewriter) for part in path.parts))
        case _:
            return path
