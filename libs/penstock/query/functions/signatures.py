"""The supported functions, by name or by IRI, with their numbers of arguments (SPARQL 1.1 §17.4, semantics.md §5)."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.query.translation.names import XSD

PENSTOCK = "urn:x-penstock:fn/"
CSPARQL_TIMESTAMP = "http://larkc.eu/csparql/sparql/jena/ext#timestamp"

_MANY = 1 << 30


@dataclass(frozen=True, slots=True)
class Signature:
    """The name of a function in docs/plan-format.md, and its minimum and maximum number of arguments."""

    name: str
    least: int
    most: int

    def expectation(self) -> str:
        """Return the permitted number of arguments as a text, such as "2 to 3 arguments"."""
        if self.most == _MANY:
            return f"at least {_count(self.least)}"
        if self.least == self.most:
            return _count(self.least)
        return f"{self.least} to {_count(self.most)}"


def _count(number: int) -> str:
    return {0: "no arguments", 1: "1 argument"}.get(number, f"{number} arguments")


def _family(names: str, least: int, most: int | None = None) -> dict[str, Signature]:
    return {name: Signature(name.lower(), least, least if most is None else most) for name in names.split()}


BUILT_INS: dict[str, Signature] = {
    **_family("NOW RAND UUID STRUUID", 0),
    **_family("BNODE", 0, 1),
    **_family("STR LANG DATATYPE BOUND IRI ABS CEIL FLOOR ROUND STRLEN UCASE LCASE ENCODE_FOR_URI", 1),
    **_family("YEAR MONTH DAY HOURS MINUTES SECONDS TIMEZONE TZ MD5 SHA1 SHA256 SHA384 SHA512", 1),
    **_family("ISIRI ISBLANK ISLITERAL ISNUMERIC", 1),
    **_family("LANGMATCHES CONTAINS STRSTARTS STRENDS STRBEFORE STRAFTER STRLANG STRDT SAMETERM", 2),
    **_family("REGEX SUBSTR", 2, 3),
    **_family("IF", 3),
    **_family("REPLACE", 3, 4),
    **_family("CONCAT COALESCE", 0, _MANY),
    "URI": Signature("iri", 1, 1),
    "ISURI": Signature("isiri", 1, 1),
}
"""The built-in functions by upper-case name."""

_CASTS = """
    string boolean integer decimal float double dateTime date
    long int short byte nonNegativeInteger positiveInteger nonPositiveInteger negativeInteger
    unsignedLong unsignedInt unsignedShort unsignedByte
"""

BY_IRI: dict[str, Signature] = {
    **{XSD + name: Signature(f"cast:{name}", 1, 1) for name in _CASTS.split()},
    PENSTOCK + "timestamp": Signature("timestamp", 3, 3),
    PENSTOCK + "windowStart": Signature("window_start", 1, 1),
    PENSTOCK + "windowEnd": Signature("window_end", 1, 1),
    PENSTOCK + "evaluationTime": Signature("evaluation_time", 0, 0),
    CSPARQL_TIMESTAMP: Signature("timestamp", 3, 3),
}
"""The functions that are called by IRI: casts, and functions of streams and windows."""
