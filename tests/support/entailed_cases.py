"""Random schemas, data and patterns for tests of entailment."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from support.entailed_graphs import DOMAIN, INVERSE, RANGE, SAME, SCHEMA, SUBCLASS, SUBPROPERTY, TYPE

if TYPE_CHECKING:
    import random

    from support.entailed_graphs import Graph, Triple

CLASSES = [f"<urn:C{i}>" for i in range(5)]
PROPERTIES = [f"<urn:p{i}>" for i in range(4)]
NODES = [f"<urn:n{i}>" for i in range(6)]
LITERALS = ['"1"', '"two"@en']


def schema_triple(rng: random.Random) -> Triple:
    kind = rng.choice([SUBCLASS, SUBCLASS, SUBPROPERTY, SUBPROPERTY, DOMAIN, RANGE, INVERSE, SAME])
    if kind == SUBCLASS:
        return rng.choice(CLASSES), kind, rng.choice(CLASSES)
    if kind in (DOMAIN, RANGE):
        return rng.choice([*PROPERTIES, TYPE] if rng.random() < 0.2 else PROPERTIES), kind, rng.choice(CLASSES)
    if kind == SAME:
        return (
            *(rng.sample(rng.choice([NODES, NODES, CLASSES, PROPERTIES]), 1)),
            kind,
            rng.choice(NODES[:3] if rng.random() < 0.6 else [*CLASSES, *PROPERTIES]),
        )
    above = [*PROPERTIES, TYPE] if kind == SUBPROPERTY and rng.random() < 0.2 else PROPERTIES
    return rng.choice(PROPERTIES), kind, rng.choice(above)


def data_triple(rng: random.Random) -> Triple:
    if rng.random() < 0.35:
        return rng.choice(NODES), TYPE, rng.choice(CLASSES)
    ends = [*NODES, *LITERALS] if rng.random() < 0.3 else [*NODES, *CLASSES[:1]]
    return rng.choice(NODES), rng.choice(PROPERTIES), rng.choice(ends)


def graph(rng: random.Random, most: int = 10, schema: int = 7) -> Graph:
    same = rng.random() < 0.5
    stated = {schema_triple(rng) for _ in range(rng.randint(0, schema))}
    return frozenset(
        {t for t in stated if same or t[1] != SAME} | {data_triple(rng) for _ in range(rng.randint(1, most))}
    )


def pattern(rng: random.Random) -> str:
    s = rng.choice(["?a", "?b", "?c", "?a", rng.choice(NODES)])
    kind = rng.random()
    if kind < 0.35:
        return f"{s} a {rng.choice(['?c', '?b', rng.choice(CLASSES), rng.choice(CLASSES)])} ."
    o = rng.choice(["?a", "?b", "?c", "?b", rng.choice([*NODES, *LITERALS, *CLASSES])])
    if kind < 0.75:
        return f"{s} {rng.choice(PROPERTIES)} {o} ."
    if kind < 0.85:
        return f"{s} ?p {o} ."
    if kind < 0.9:
        return f"{s} {rng.choice(SCHEMA)} {o} ."
    p, q = rng.sample(PROPERTIES, 2)
    return f"{s} {rng.choice([f'{p}/{q}', f'{p}|{q}', f'^{p}', f'{p}/a', f'(^{p}|{q})/{p}'])} {o} ."


def group(rng: random.Random, depth: int = 1) -> str:
    found = " ".join(pattern(rng) for _ in range(rng.randint(1, 3)))
    if depth and rng.random() < 0.5:
        inner = group(rng, depth - 1)
        found += rng.choice(
            [
                f" OPTIONAL {{ {inner} }}",
                f" MINUS {{ {inner} }}",
                f" {{ {inner} }} UNION {{ {pattern(rng)} }}",
                f" FILTER EXISTS {{ {inner} }}",
                f" FILTER NOT EXISTS {{ {inner} }}",
                f" {{ SELECT DISTINCT ?a {{ {inner} }} }}",
                f" BIND(1 AS ?one) {{ {inner} }}",
            ]
        )
    return found


def query_text(rng: random.Random) -> tuple[str, str]:
    """Return what precedes the dataset, and the pattern."""
    select = rng.choice(
        ["SELECT *", "SELECT *", "SELECT ?a", "SELECT DISTINCT ?a ?b", "SELECT (COUNT(*) AS ?n)", "ASK"]
    )
    return select, f"WHERE {{ {group(rng)} }}"


def bag(answer: Any) -> Any:
    if isinstance(answer, bool):
        return answer
    return Counter(frozenset((name, str(term)) for name, term in row.items() if term is not None) for row in answer)
