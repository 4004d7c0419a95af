"""Random chains in which tests read what an OPTIONAL or a BIND binds before the last scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

FIRST = ("?s <urn:p> ?o .", "?s ?k ?o .", "?s <urn:q> ?o . ?s <urn:p> ?z .")
BINDINGS = (
    "OPTIONAL { ?s <urn:q> ?v }",
    "OPTIONAL { ?o <urn:r> ?v }",
    "OPTIONAL { ?s <urn:r> ?v . ?v <urn:r> ?w }",
    "OPTIONAL { ?s <urn:q> ?v FILTER (?v != ?o) }",
    "OPTIONAL { ?s <urn:r> ?w } OPTIONAL { ?o <urn:q> ?v FILTER (BOUND(?w)) }",
    "BIND (?o + 1 AS ?v)",
    "BIND (CONCAT(STR(?o), 'x') AS ?v)",
    "BIND (?o * 2 AS ?w) OPTIONAL { ?s <urn:q> ?v FILTER (?v < ?w) }",
)
LAST = ("?s <urn:p> ?t .", "?s <urn:q> ?t .", "?t <urn:q> ?o .", "?s <urn:r> ?t .", "?t ?j ?o .", "?o <urn:r> ?t .")
TESTS = (
    "FILTER EXISTS { ?t <urn:r> ?l FILTER (?v < 6) }",
    "FILTER NOT EXISTS { ?t <urn:r> ?l FILTER (BOUND(?v)) }",
    "FILTER EXISTS { ?s <urn:q> ?l FILTER (?l != ?v) }",
    "FILTER NOT EXISTS { ?s <urn:p> ?l FILTER (?l = ?v || ?l = ?t) }",
    "FILTER EXISTS { ?s <urn:q> ?v }",
    "FILTER NOT EXISTS { ?s <urn:p> ?v . ?s <urn:q> ?l }",
    "FILTER (?v < 3 || ?v = ?t)",
    "FILTER (!BOUND(?v) || STR(?v) > STR(?t))",
    "MINUS { ?s <urn:q> ?v }",
    "MINUS { ?s <urn:q> ?l FILTER (?l > 1) }",
    "MINUS { ?t <urn:r> ?v }",
    "OPTIONAL { ?t <urn:q> ?x FILTER (?x != ?v) }",
)
HEADS = (
    "SELECT DISTINCT ?s ?v",
    "SELECT (COUNT(*) AS ?n) (COUNT(?v) AS ?m)",
    "SELECT ?v (COUNT(*) AS ?n)",
    "SELECT ?t (SUM(?v) AS ?n)",
)
STREAMED_HEADS = ("SELECT ?s ?v", "SELECT ?o ?t ?v", "SELECT DISTINCT ?t ?v")


def where(random_: random.Random) -> str:
    """Return the pattern of a query."""
    tests = " ".join(random_.sample(TESTS, random_.choice((1, 1, 2))))
    parts = [random_.choice(FIRST), random_.choice(BINDINGS), random_.choice(LAST), tests]
    if random_.random() < 0.2:
        parts.insert(2, random_.choice(TESTS))
    return f"WHERE {{ {' '.join(parts)} }}"


def query(random_: random.Random, dataset: str, *, streamed: bool = False) -> str:
    """Return a query over a default graph."""
    head = random_.choice(STREAMED_HEADS if streamed else HEADS)
    key = head.split()[1]
    grouped = f" GROUP BY {key}" if "(" in head and key.startswith("?") else ""
    return f"{head} {dataset}{where(random_)}{grouped}"
