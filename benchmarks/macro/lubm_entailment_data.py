"""LUBM's queries 1-14, and the part of its ontology that RDFS, owl:inverseOf and owl:TransitiveProperty can express.

The ontology defines Student and Chair by restrictions. Here, GraduateStudent is a subclass of Student, and Chair the
domain of headOf, which these restrictions imply for the generated data.
"""

from __future__ import annotations

UB = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
_RDFS = "http://www.w3.org/2000/01/rdf-schema#"

_CLASSES = """
Organization: College Department Institute Program ResearchGroup University
Person: Director Employee ResearchAssistant Student TeachingAssistant
Employee: AdministrativeStaff Faculty
AdministrativeStaff: ClericalStaff SystemsStaff
Faculty: Lecturer PostDoc Professor
Professor: AssistantProfessor AssociateProfessor Chair Dean FullProfessor VisitingProfessor
Student: GraduateStudent UndergraduateStudent
Publication: Article Book Manual Software Specification UnofficialPublication
Article: ConferencePaper JournalArticle TechnicalReport
Work: Course Research
Course: GraduateCourse
"""
_PROPERTIES = """
degreeFrom: doctoralDegreeFrom mastersDegreeFrom undergraduateDegreeFrom
memberOf: worksFor
worksFor: headOf
"""
_DOMAINS = """
Person: advisor age degreeFrom emailAddress mastersDegreeFrom doctoralDegreeFrom undergraduateDegreeFrom telephone title
University: hasAlumnus
Organization: affiliateOf affiliatedOrganizationOf member orgPublication subOrganizationOf
Publication: publicationAuthor publicationDate publicationResearch
ResearchGroup: researchProject
Faculty: teacherOf
TeachingAssistant: teachingAssistantOf
Schedule: listedCourse
Professor: tenured
Chair: headOf
"""
_RANGES = """
Professor: advisor
Person: affiliateOf hasAlumnus member publicationAuthor
Organization: affiliatedOrganizationOf subOrganizationOf
University: degreeFrom mastersDegreeFrom doctoralDegreeFrom undergraduateDegreeFrom
Course: listedCourse teacherOf teachingAssistantOf
Publication: orgPublication
Research: publicationResearch researchProject
"""
_INVERSES = "degreeFrom: hasAlumnus\nmemberOf: member"


def schema() -> str:
    """Return the schema as N-Triples."""
    parts = (
        (_CLASSES, f"{_RDFS}subClassOf"),
        (_PROPERTIES, f"{_RDFS}subPropertyOf"),
        (_DOMAINS, f"{_RDFS}domain"),
        (_RANGES, f"{_RDFS}range"),
        (_INVERSES, "http://www.w3.org/2002/07/owl#inverseOf"),
    )
    lines = []
    for table, predicate in parts:
        for line in table.strip().splitlines():
            above, names = line.split(": ")
            lines += [f"<{UB}{name}> <{predicate}> <{UB}{above}> .\n" for name in names.split()]
    return "".join(lines)


_DEPARTMENT = "<http://www.Department0.University0.edu>"
_PATTERNS = (
    "?X a ub:GraduateStudent . ?X ub:takesCourse <http://www.Department0.University0.edu/GraduateCourse0>",
    (
        "?X a ub:GraduateStudent . ?Y a ub:University . ?Z a ub:Department . ?X ub:memberOf ?Z ."
        " ?Z ub:subOrganizationOf ?Y . ?X ub:undergraduateDegreeFrom ?Y"
    ),
    "?X a ub:Publication . ?X ub:publicationAuthor <http://www.Department0.University0.edu/AssistantProfessor0>",
    f"?X a ub:Professor . ?X ub:worksFor {_DEPARTMENT} . ?X ub:name ?Y1 . ?X ub:emailAddress ?Y2 . ?X ub:telephone ?Y3",
    f"?X a ub:Person . ?X ub:memberOf {_DEPARTMENT}",
    "?X a ub:Student",
    (
        "?X a ub:Student . ?Y a ub:Course . ?X ub:takesCourse ?Y ."
        " <http://www.Department0.University0.edu/AssociateProfessor0> ub:teacherOf ?Y"
    ),
    (
        "?X a ub:Student . ?Y a ub:Department . ?X ub:memberOf ?Y ."
        " ?Y ub:subOrganizationOf <http://www.University0.edu> . ?X ub:emailAddress ?Z"
    ),
    "?X a ub:Student . ?Y a ub:Faculty . ?Z a ub:Course . ?X ub:advisor ?Y . ?Y ub:teacherOf ?Z . ?X ub:takesCourse ?Z",
    "?X a ub:Student . ?X ub:takesCourse <http://www.Department0.University0.edu/GraduateCourse0>",
    # owl:TransitiveProperty is no part of the profile: the path says what it means
    "?X a ub:ResearchGroup . ?X ub:subOrganizationOf+ <http://www.University0.edu>",
    "?X a ub:Chair . ?Y a ub:Department . ?X ub:worksFor ?Y . ?Y ub:subOrganizationOf <http://www.University0.edu>",
    "?X a ub:Person . <http://www.University0.edu> ub:hasAlumnus ?X",
    "?X a ub:UndergraduateStudent",
)


def query(number: int, clause: str = "") -> str:
    """Return the text of query `number`, from 1 to 14, with a clause before its pattern."""
    return f"PREFIX ub: <{UB}> SELECT * {clause} WHERE {{ {_PATTERNS[number - 1]} }}"
