"""Twenty one-shot queries over LUBM that use the rest of SPARQL: the texts of `python -m benchmarks lubm_general`."""

_PREFIX = "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n"
_DEPARTMENT = "<http://www.Department0.University0.edu>"
_PROFESSOR = "<http://www.Department0.University0.edu/FullProfessor0>"

_PATTERNS = {
    "COUNT by class": "SELECT ?c (COUNT(?x) AS ?n) { ?x a ?c } GROUP BY ?c",
    "COUNT DISTINCT": "SELECT (COUNT(DISTINCT ?s) AS ?n) { ?s ub:takesCourse ?c . ?t ub:teacherOf ?c }",
    "HAVING": "SELECT ?d (COUNT(?x) AS ?n) { ?x ub:memberOf ?d } GROUP BY ?d HAVING (COUNT(?x) > 600)",
    "sub-select": """SELECT ?a ?n ?d {
        { SELECT ?a (COUNT(?s) AS ?n) { ?s ub:advisor ?a } GROUP BY ?a } ?a ub:worksFor ?d FILTER (?n > 8) }""",
    "AVG over a sub-select": """SELECT (AVG(?n) AS ?mean) (MAX(?n) AS ?most) {
        SELECT ?c (COUNT(?s) AS ?n) { ?s ub:takesCourse ?c } GROUP BY ?c }""",
    "GROUP_CONCAT": """SELECT ?p (GROUP_CONCAT(?i; SEPARATOR=" ") AS ?all) {
        ?p ub:worksFor ?d ; ub:researchInterest ?i } GROUP BY ?p""",
    "DISTINCT": "SELECT DISTINCT ?d ?u { ?x ub:memberOf ?d ; ub:undergraduateDegreeFrom ?u }",
    "MINUS": "SELECT ?x { ?x a ub:GraduateStudent MINUS { ?x ub:teachingAssistantOf ?c } }",
    "NOT EXISTS": """SELECT ?x ?d { ?x a ub:FullProfessor ; ub:worksFor ?d
        FILTER NOT EXISTS { ?x ub:headOf ?d } }""",
    "OPTIONAL": """SELECT ?x ?c { ?x a ub:GraduateStudent ; ub:memberOf ?d .
        ?d ub:subOrganizationOf <http://www.University0.edu> OPTIONAL { ?x ub:teachingAssistantOf ?c } }""",
    "path of alternatives": "SELECT ?x ?d { ?x ub:advisor|ub:headOf|ub:teachingAssistantOf ?d }",
    "transitive path": "SELECT ?g { ?g ub:subOrganizationOf+ <http://www.University0.edu> }",
    "path of a sequence and an inverse": f"SELECT ?t {{ {_DEPARTMENT} ^ub:memberOf/ub:advisor/ub:teacherOf ?t }}",
    "regex": """SELECT ?x ?n { ?x a ub:FullProfessor ; ub:emailAddress ?n
        FILTER regex(?n, "^FullProfessor[0-3]@Department1.*0[.]edu$") }""",
    "ORDER BY with LIMIT": "SELECT ?x ?e { ?x ub:worksFor ?d ; ub:emailAddress ?e } ORDER BY DESC(?e) LIMIT 10",
    "UNION with ORDER BY": """SELECT ?x {
        { ?x a ub:FullProfessor } UNION { ?x a ub:AssociateProfessor } } ORDER BY ?x""",
    "point look-up": f"SELECT ?e ?t {{ {_PROFESSOR} ub:emailAddress ?e ; ub:telephone ?t }}",
    "VALUES look-ups": """SELECT ?x ?e { VALUES ?x {
        <http://www.Department0.University0.edu/FullProfessor0>
        <http://www.Department1.University0.edu/FullProfessor1>
        <http://www.Department2.University0.edu/FullProfessor2> } ?x ub:emailAddress ?e }""",
    "all triples of a vertex": f"SELECT ?p ?o {{ {_PROFESSOR} ?p ?o }}",
    "BIND and FILTER": f"""SELECT ?x ?k {{ ?x ub:worksFor {_DEPARTMENT} ; ub:name ?n
        BIND (STRLEN(?n) AS ?k) FILTER (?k > 14 && CONTAINS(?n, "Assistant")) }}""",
}

TEXTS = {name: _PREFIX + pattern for name, pattern in _PATTERNS.items()}
"""The text of each query by its name."""

ORDERED = frozenset({"ORDER BY with LIMIT", "UNION with ORDER BY"})
"""Queries whose solutions have one order."""

LISTS = frozenset({"all"})
"""Variables whose value is a list of words in any order (GROUP_CONCAT)."""
