"""Translation of property paths, SPARQL 1.1 §18.2.2.3 and §18.2.2.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from penstock.query.algebra.tree import (
    Alternative,
    Inverse,
    Iri,
    Link,
    NegatedSet,
    OneOrMore,
    Path,
    PathTriple,
    Sequence,
    Term,
    Triple,
    ZeroOrMore,
    ZeroOrOne,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.query.syntax.ast_nodes import PathSyntax, VerbSyntax
    from penstock.query.translation.context import Context

_CLOSURES: dict[str, type[ZeroOrMore | OneOrMore | ZeroOrOne]] = {"*": ZeroOrMore, "+": OneOrMore, "?": ZeroOrOne}


def path(context: Context, syntax: VerbSyntax) -> Path:
    """Translate a predicate or property path."""
    if isinstance(syntax, Token):
        return Link(context.names.iri(syntax))
    if syntax.operator == "!":
        return _negated(context, syntax)
    context.enter(1, syntax.at)
    parts = tuple(path(context, part) for part in syntax.parts)
    context.depth -= 1
    match syntax.operator:
        case "|":
            return Alternative(parts)
        case "/":
            return Sequence(tuple(piece for part in parts for piece in _pieces(part)))
        case "^":
            inner = parts[0]
            return inner.path if isinstance(inner, Inverse) else Inverse(inner)
        case operator:
            return _CLOSURES[operator](parts[0])


def _pieces(part: Path) -> tuple[Path, ...]:
    return part.parts if isinstance(part, Sequence) else (part,)


def _negated(context: Context, syntax: PathSyntax) -> NegatedSet:
    """Translate a negated property set. The set `!()` gets an empty set in forward direction, and therefore matches any
    predicate. In any other set, a direction without members is None (§18.1.7).
    """
    forward: list[Iri] = []
    inverse: list[Iri] = []
    for part in syntax.parts:
        if isinstance(part, Token):
            forward.append(context.names.iri(part))
        else:
            inner = part.parts[0]
            assert isinstance(inner, Token)  # guaranteed by the grammar
            inverse.append(context.names.iri(inner))
    return NegatedSet(tuple(forward) if forward or not inverse else None, tuple(inverse) if inverse else None)


def path_triples(context: Context, subject: Term, way: Path, target: Term, at: int) -> Iterator[Triple | PathTriple]:
    """Yield triples for links, inverses and sequences, and path patterns for all other paths. New variables connect the
    parts of a sequence.
    """
    match way:
        case Link():
            yield Triple(subject, way.iri, target, at)
        case Inverse():
            yield from path_triples(context, target, way.path, subject, at)
        case Sequence():
            for part in way.parts[:-1]:
                between = context.fresh("p", at)
                yield from path_triples(context, subject, part, between, at)
                subject = between
            yield from path_triples(context, subject, way.parts[-1], target, at)
        case _:
            yield PathTriple(subject, way, target, at)
