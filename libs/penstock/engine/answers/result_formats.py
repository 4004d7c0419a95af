"""Formats the answers of ASK queries as SPARQL Results JSON and XML, and sorts N-Triples documents. The native module
writes all other answers (docs/adr/0082-native-answers.md).
"""

from __future__ import annotations

import json


def boolean_json(answer: bool) -> str:
    """Return the answer of an ASK as a SPARQL Results JSON document."""
    return json.dumps({"head": {}, "boolean": answer})


def boolean_xml(answer: bool) -> str:
    """Return the answer of an ASK as a SPARQL Results XML document."""
    namespace = "http://www.w3.org/2005/sparql-results#"
    document = f'<sparql xmlns="{namespace}"><head/><boolean>{str(answer).lower()}</boolean></sparql>'
    return f'<?xml version="1.0"?>\n{document}'


def in_order(ntriples: str) -> str:
    """Sort the lines of an N-Triples document. Equal graphs then give equal texts, except for labels of blank nodes.

    Only a line feed ends a line. Literals can contain other characters that `str.splitlines` treats as line ends, such
    as U+2028.
    """
    return "".join(f"{line}\n" for line in sorted(ntriples.split("\n")) if line)
