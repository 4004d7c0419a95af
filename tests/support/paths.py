"""Property paths of the small evaluator, which follow SPARQL 1.1 §18.4 literally."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

from support import patterns as P

if TYPE_CHECKING:
    from support.evaluator import Content
    from support.terms import Term


def path_pairs(path: P.Path, g: Content, s: Term | None, o: Term | None) -> list[tuple[Term, Term]]:
    """Return the bag of pairs that `path` connects. `s` and `o` are its constant ends (None = variable)."""
    match path:
        case P.Link(iri):
            pairs = [(a, b) for a, _, b in g.by_predicate.get(iri, [])]
        case P.Inverse(inner):
            pairs = [(a, b) for b, a in path_pairs(inner, g, o, s)]
        case P.Alternative(first, second):
            pairs = path_pairs(first, g, s, o) + path_pairs(second, g, s, o)
        case P.Sequence(first, second):
            left, right = path_pairs(first, g, s, None), path_pairs(second, g, None, o)
            pairs = [(a, d) for a, b in left for c, d in right if b == c]
        case P.Negated(forward, inverse):
            pairs = [(a, b) for a, p, b in g.triples if p not in forward] if forward else []
            pairs += [(b, a) for a, p, b in g.triples if p not in inverse] if inverse else []
        case P.Repeat(inner, mark):
            pairs = _repeat(inner, mark, g, s, o)
    return [(a, b) for a, b in pairs if s in (None, a) and o in (None, b)]


def _repeat(inner: P.Path, mark: str, g: Content, s: Term | None, o: Term | None) -> list[tuple[Term, Term]]:
    once: dict[Term, set[Term]] = defaultdict(set)
    ends = {end for end in (s, o) if end is not None}
    steps = [path_pairs(inner, g, None, None), *(path_pairs(inner, g, end, None) for end in ends)]
    steps += [path_pairs(inner, g, None, end) for end in ends]  # `inner` too may have length zero at a constant end
    for a, b in itertools.chain(*steps):
        once[a].add(b)
    nodes = g.nodes() | ends
    pairs: set[tuple[Term, Term]] = set() if mark == "+" else {(n, n) for n in nodes}
    for start in nodes:
        reached: set[Term] = set()
        border = set(once[start])
        while border:
            reached |= border
            border = set() if mark == "?" else {b for a in border for b in once[a]} - reached
        pairs |= {(start, end) for end in reached}
    return list(pairs)
