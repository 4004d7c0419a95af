"""Queries whose operators keep their state between evaluations (ADR 78, 81)."""

from __future__ import annotations

S, T, U = "urn:s", "urn:t", "urn:u"  # U adds triples to the stored graph
ONE = f"FROM STREAM <{S}> [RANGE 5s STEP 1s] "
TWO = f"FROM NAMED WINDOW <urn:v> ON <{S}> [RANGE 5s STEP 1s] FROM NAMED WINDOW <urn:w> ON <{T}> [RANGE 3s STEP 1s] "
BOTH = "WINDOW <urn:v> { ?s <urn:p> ?o } WINDOW <urn:w> { ?s <urn:q> ?x }"
QUERIES = (
    "SELECT (COUNT(*) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?s (COUNT(*) AS ?n) (SUM(?o) AS ?m) " + ONE + "WHERE { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT ?s (AVG(?o) AS ?m) " + ONE + "WHERE { ?s <urn:p> ?o } GROUP BY ?s HAVING (COUNT(?o) > 1)",
    "SELECT (SUM(?o) AS ?m) (AVG(?o * 0.1) AS ?a) " + ONE + "WHERE { ?s <urn:p> ?o FILTER (isNumeric(?o)) }",
    "SELECT ?p (SUM(?o + 1) AS ?m) " + ONE + "WHERE { ?s ?p ?o FILTER (?o > 2) } GROUP BY ?p",
    "SELECT ?b (COUNT(*) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o BIND (FLOOR(?o) AS ?b) } GROUP BY ?b",
    "SELECT ?b (COUNT(*) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o BIND (CONCAT(STR(?s), 'x') AS ?b) } GROUP BY ?b",
    "SELECT DISTINCT ?s " + ONE + "WHERE { ?s <urn:p> ?o }",
    "SELECT DISTINCT ?o " + ONE + "WHERE { ?s ?p ?o FILTER (?s != <urn:v1>) }",
    "SELECT (COUNT(*) AS ?n) (SUM(?x) AS ?m) " + TWO + f"WHERE {{ {BOTH} }}",
    "SELECT ?o (COUNT(?x) AS ?n) " + TWO + f"WHERE {{ {BOTH} }} GROUP BY ?o",
    "SELECT DISTINCT ?s ?x " + TWO + f"WHERE {{ {BOTH} }}",
    "SELECT (COUNT(*) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o . ?r <urn:p> ?o . ?r <urn:q> ?x }",
    "SELECT ?s (COUNT(*) AS ?n) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } FILTER NOT EXISTS { WINDOW <urn:w> { ?s <urn:q> ?x } } } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } FILTER EXISTS { WINDOW <urn:w> { ?s <urn:q> ?o } } }",
    "SELECT (SUM(?o) AS ?m) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o . ?s <urn:q> ?y } "
    + "FILTER NOT EXISTS { WINDOW <urn:w> { ?s <urn:q> ?x } } FILTER EXISTS { WINDOW <urn:w> { ?o2 <urn:p> ?o } } }",
    "SELECT ?s (COUNT(*) AS ?n) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } MINUS { WINDOW <urn:w> { ?s <urn:q> ?x } } } GROUP BY ?s",
    "SELECT DISTINCT ?s ?o "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } MINUS { WINDOW <urn:w> { ?s <urn:p> ?o . ?s <urn:q> ?x FILTER (?x > 1) } } }",
)
STORED = "FROM <urn:x-penstock:stored> "
MERGED = ONE + STORED
BESIDE = f"FROM NAMED WINDOW <urn:v> ON <{S}> [RANGE 5s STEP 1s] " + STORED
NAMED = f"FROM NAMED WINDOW <urn:v> ON <{S}> [RANGE 5s STEP 1s] FROM NAMED <urn:g> FROM NAMED <urn:h> "
OVER_STORED = (
    "SELECT (COUNT(*) AS ?n) " + MERGED + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?s (COUNT(*) AS ?n) (SUM(?o) AS ?m) " + MERGED + "WHERE { ?s <urn:p> ?o . ?s <urn:q> ?x } GROUP BY ?s",
    "SELECT DISTINCT ?s ?x " + MERGED + "WHERE { ?s <urn:p> ?o . ?o <urn:r> ?x }",
    "SELECT ?s (COUNT(*) AS ?n) " + MERGED + "WHERE { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:r> ?x } } GROUP BY ?s",
    "SELECT ?s (COUNT(*) AS ?n) " + MERGED + "WHERE { ?s <urn:p> ?o MINUS { ?s <urn:r> ?x } } GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) " + BESIDE + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } ?s <urn:r> ?x }",
    "SELECT ?x (SUM(?o) AS ?m) "
    + BESIDE
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } ?s <urn:r> ?t . ?t <urn:r> ?x FILTER (?o != 2) } GROUP BY ?x",
    "SELECT DISTINCT ?o "
    + BESIDE
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } FILTER NOT EXISTS { ?s <urn:r> ?t . ?t <urn:q> ?x } }",
    "SELECT (COUNT(*) AS ?n) "
    + BESIDE
    + "WHERE { ?s <urn:r> ?x FILTER EXISTS { WINDOW <urn:v> { ?s <urn:p> ?o . ?s <urn:q> ?y } } }",
    "SELECT ?x (COUNT(*) AS ?n) "
    + NAMED
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } GRAPH <urn:g> { ?s <urn:r> ?x } } GROUP BY ?x",
    "SELECT ?g (COUNT(*) AS ?n) "
    + NAMED
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } GRAPH ?g { ?s <urn:r> ?x } } GROUP BY ?g",
)
WITH_SIDES = (
    "SELECT ?s (COUNT(*) AS ?n) (COUNT(?x) AS ?m) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x } } } GROUP BY ?s",
    "SELECT DISTINCT ?s ?x " + ONE + "WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x FILTER (?x > ?o) } }",
    "SELECT (COUNT(*) AS ?n) "
    + ONE
    + "WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x } FILTER (!BOUND(?x) || ?x > 1) }",
    "SELECT ?y (COUNT(?z) AS ?n) "
    + BESIDE
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { ?s <urn:r> ?y } OPTIONAL { ?s <urn:r> ?t . ?t <urn:r> ?z } } "
    + "GROUP BY ?y",
    "SELECT ?s (COUNT(*) AS ?n) " + ONE + "WHERE { { ?s <urn:p> ?o } UNION { ?s <urn:q> ?o } } GROUP BY ?s",
    "SELECT DISTINCT ?s ?y "
    + MERGED
    + "WHERE { { ?s <urn:p> ?o } UNION { ?s <urn:q> ?o . ?s <urn:p> ?y } ?s <urn:r> ?t FILTER (BOUND(?y) || ?o > 1) }",
    "SELECT (COUNT(*) AS ?n) "
    + MERGED
    + "WHERE { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:r> ?t . ?t <urn:q> ?x FILTER (?x < ?o) } }",
    "SELECT (SUM(?o) AS ?n) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x } } "
    + "FILTER EXISTS { WINDOW <urn:w> { ?s <urn:p> ?y FILTER (?y != ?o) } } }",
)
KEYED = (  # changes of a test are found by the variables that it shares with the scans
    "SELECT ?s (COUNT(*) AS ?n) (COUNT(?x) AS ?m) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x . ?s <urn:p> ?y FILTER (?y < 3) } } } "
    + "GROUP BY ?s",
    "SELECT ?o (COUNT(*) AS ?n) (SUM(?x) AS ?m) "
    + MERGED
    + "WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:q> ?x . ?s <urn:r> ?t } OPTIONAL { ?s <urn:r> ?y . ?y <urn:r> ?z } "
    + "FILTER (!BOUND(?x) || ?x != 2) } GROUP BY ?o",
    "SELECT ?s ?o (COUNT(?x) AS ?n) (COUNT(*) AS ?m) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o . ?s <urn:q> ?y } OPTIONAL { WINDOW <urn:w> { ?s ?x ?o } } } GROUP BY ?s ?o",
    "SELECT (COUNT(*) AS ?n) (COUNT(?y) AS ?m) "
    + MERGED
    + "WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:r> ?x } OPTIONAL { ?x <urn:r> ?y } FILTER NOT EXISTS { ?s <urn:q> ?z } }",
    "SELECT ?b (COUNT(*) AS ?n) (COUNT(?x) AS ?m) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } BIND (?o + 1 AS ?b) "
    + "OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x FILTER (?x >= ?b) } } } GROUP BY ?b",
    "SELECT ?s (COUNT(*) AS ?n) "
    + MERGED
    + "WHERE { ?s <urn:p> ?o FILTER EXISTS { ?s <urn:q> ?x . ?s <urn:r> ?y . ?y <urn:r> ?o } } GROUP BY ?s",
    "SELECT ?s ?t (COUNT(?x) AS ?n) "
    + TWO
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x } } "
    + "BIND (COALESCE(?x, 7) AS ?t) FILTER (?t != ?o) } GROUP BY ?s ?t",
)
STAR = "{ ?y <urn:r> <urn:v1> . ?y <urn:r> <urn:v2> . ?s <urn:q> ?y }"
BRANCHED = (  # several triples of the pattern may change at once, and lead to the row only together with others
    "SELECT ?s (COUNT(*) AS ?n) " + MERGED + f"WHERE {{ ?s <urn:p> ?o FILTER EXISTS {STAR} }} GROUP BY ?s",
    "SELECT (COUNT(*) AS ?n) " + MERGED + f"WHERE {{ ?s <urn:p> ?o FILTER NOT EXISTS {STAR} }}",
    "SELECT ?s (COUNT(?y) AS ?n) " + MERGED + f"WHERE {{ ?s <urn:p> ?o OPTIONAL {STAR} }} GROUP BY ?s",
    "SELECT DISTINCT ?s "
    + MERGED
    + "WHERE { ?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:r> ?x . ?x <urn:r> ?y . ?x <urn:q> ?z } }",
)
STREAMED = (
    "SELECT ?s ?o " + ONE + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?o " + ONE + "WHERE { ?s ?p ?o }",
    "SELECT ?s ?x " + TWO + f"WHERE {{ {BOTH} }}",
    "SELECT ?s ?b ?t " + MERGED + "WHERE { ?s <urn:p> ?o . ?s <urn:r> ?t BIND (CONCAT(STR(?o), ' as a text') AS ?b) }",
    "SELECT ?s ?x " + TWO + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x } } }",
    "SELECT DISTINCT ?s " + ONE + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?s (COUNT(*) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o } GROUP BY ?s",
)
WITH_VALUES = (
    "SELECT (MIN(?o) AS ?n) (MAX(?o) AS ?m) " + ONE + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?s (MIN(?o) AS ?n) (MAX(?o) AS ?m) (SAMPLE(?o) AS ?x) " + ONE + "WHERE { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT ?s (MAX(?o) AS ?m) (COUNT(*) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o FILTER (isNumeric(?o)) } GROUP BY ?s",
    "SELECT ?s (MAX(?o * 2) AS ?m) (SAMPLE(?o / 2) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(DISTINCT ?o) AS ?m) " + ONE + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?p (COUNT(DISTINCT ?s) AS ?n) (SUM(DISTINCT ?o) AS ?m) " + ONE + "WHERE { ?s ?p ?o } GROUP BY ?p",
    "SELECT ?s (AVG(DISTINCT ?o + 1) AS ?m) (MIN(DISTINCT ?o) AS ?n) " + ONE + "WHERE { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT ?s (GROUP_CONCAT(?o) AS ?m) (GROUP_CONCAT(DISTINCT ?o; separator='|') AS ?n) "
    + ONE
    + "WHERE { ?s <urn:p> ?o } GROUP BY ?s",
    "SELECT (COUNT(DISTINCT ?y) AS ?n) (MAX(?x) AS ?m) "
    + BESIDE
    + "WHERE { WINDOW <urn:v> { ?s <urn:p> ?o } ?s <urn:r> ?x OPTIONAL { ?x <urn:r> ?y } }",
    "SELECT (MAX(CONCAT('a long computed text ', STR(?o))) AS ?m) (COUNT(DISTINCT STRLEN(STR(?o))) AS ?n) "
    + ONE
    + "WHERE { ?s <urn:p> ?o }",
    "SELECT ?s (MAX(?o) AS ?m) " + TWO + f"WHERE {{ {BOTH} }} GROUP BY ?s HAVING (COUNT(DISTINCT ?x) > 1)",
)
GRAPHS = (  # several solutions may give the same triple
    "CONSTRUCT { ?s <urn:of> ?o } " + ONE + "WHERE { ?s <urn:p> ?o }",
    "CONSTRUCT { ?o <urn:of> ?s . ?s a <urn:c> . ?s <urn:is> ?o } " + ONE + "WHERE { ?s ?p ?o }",
    "CONSTRUCT { ?s <urn:x> ?x . <urn:a> <urn:has> ?o } " + TWO + f"WHERE {{ {BOTH} }}",
    "CONSTRUCT { ?s <urn:b> ?b . ?s <urn:t> ?t } "
    + MERGED
    + "WHERE { ?s <urn:p> ?o OPTIONAL { ?s <urn:r> ?t } BIND (CONCAT(STR(?o), ' as a text') AS ?b) }",
    "CONSTRUCT { ?s <urn:n> ?n } " + ONE + "WHERE { SELECT ?s (COUNT(*) AS ?n) WHERE { ?s <urn:p> ?o } GROUP BY ?s }",
    "CONSTRUCT { ?s <urn:of> ?o } " + ONE + "WHERE { ?s <urn:p> ?o FILTER NOT EXISTS { ?o <urn:q> ?x } }",
)
BOOLEANS = (
    "ASK " + ONE + "WHERE { ?s <urn:p> 3 . ?s <urn:q> ?x }",
    "ASK " + MERGED + "WHERE { ?s <urn:p> ?o . ?s <urn:r> ?t FILTER NOT EXISTS { ?s <urn:q> ?x } }",
)
