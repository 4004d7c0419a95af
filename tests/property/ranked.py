"""Random queries with ORDER BY, whose rows are kept in order (ADR 89), and with COUNT(DISTINCT *)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from property.maintained import BESIDE, BOTH, MERGED, ONE, TWO

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

_PATTERNS = (  # dataset, pattern, its variables
    (ONE, "?s <urn:p> ?o", "so"),
    (ONE, "?s ?p ?o", "spo"),
    (ONE, "?s <urn:p> ?o FILTER (?o != 2)", "so"),
    (ONE, "?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x }", "sox"),
    (ONE, "?s <urn:p> ?o BIND (?o * 2 AS ?x)", "sox"),
    (ONE, "?s <urn:p> ?o BIND (CONCAT('a long computed text ', STR(?o)) AS ?x)", "sox"),
    (ONE, "{ ?s <urn:p> ?o } UNION { ?s <urn:q> ?x }", "sox"),
    (TWO, BOTH, "sox"),
    (TWO, "WINDOW <urn:v> { ?s <urn:p> ?o } FILTER NOT EXISTS { WINDOW <urn:w> { ?s <urn:q> ?x } }", "so"),
    (MERGED, "?s <urn:p> ?o . ?o <urn:r> ?x", "sox"),
    (BESIDE, "WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { ?s <urn:r> ?x }", "sox"),
)
_AGGREGATES = ("COUNT(*)", "COUNT(*)", "COUNT(?%s)", "SUM(?%s)", "AVG(?%s)", "MAX(?%s)", "COUNT(DISTINCT ?%s)")
_KEYS = ("?%s", "?%s", "?%s", "ASC(?%s)", "DESC(?%s)", "DESC(?%s)", "(?%s + 1)", "STR(?%s)", "isIRI(?%s)")


def query(random_: random.Random) -> str:
    """Return a query whose order may have ties: of values, of all keys, of unbound keys."""
    dataset, pattern, names = random_.choice(_PATTERNS)
    if random_.random() < 0.15:
        by = random_.choice(("", f" GROUP BY ?{random_.choice(names)}"))
        shown = by.replace(" GROUP BY", "")
        return f"SELECT{shown} (COUNT(DISTINCT *) AS ?n) {dataset}WHERE {{ {pattern} }}{by}"
    order, limit = _order(random_, names), _limit(random_)
    if random_.random() < 0.3:
        key, value = random_.choice(names), random_.choice(names)
        aggregate = random_.choice(_AGGREGATES).replace("%s", value)
        order = f"ORDER BY {random_.choice(('DESC(?n)', '?n', f'DESC(?n) ?{key}', f'?{key} ?n', 'DESC(?n + 1)'))}"
        having = random_.choice(("", "", " HAVING (COUNT(*) > 1)", " HAVING (COUNT(*) < 3)"))
        head = random_.choice((f"SELECT ?{key} ({aggregate} AS ?n)", f"SELECT ({aggregate} AS ?n)"))
        return f"{head} {dataset}WHERE {{ {pattern} }} GROUP BY ?{key}{having} {order}{limit}"
    shown = random_.sample(names, random_.randint(1, len(names)))
    distinct = random_.random() < 0.3
    if distinct and random_.random() < 0.7:
        order = _order(random_, shown)
    head = f"SELECT {'DISTINCT ' if distinct else ''}{' '.join(f'?{name}' for name in shown)} "
    if random_.random() < 0.2:
        inner = f"{head}WHERE {{ {pattern} }} {order}{limit}"
        value = random_.choice(shown)
        return f"SELECT (COUNT(*) AS ?n) (MIN(?{value}) AS ?m) {dataset}WHERE {{ {{ {inner} }} }}"
    return f"{head}{dataset}WHERE {{ {pattern} }} {order}{limit}"


def _order(random_: random.Random, names: Sequence[str]) -> str:
    keys = [random_.choice(_KEYS) % random_.choice(names) for _ in range(random_.choice((1, 2, 2, 3)))]
    return f"ORDER BY {' '.join(keys)}"


def _limit(random_: random.Random) -> str:
    limit = "" if random_.random() < 0.3 else f" LIMIT {random_.choice((0, 1, 1, 2, 3, 5, 8, 13, 1000))}"
    return limit + (f" OFFSET {random_.choice((1, 1, 2, 4, 20))}" if random_.random() < 0.3 else "")
