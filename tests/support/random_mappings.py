"""Random mappings in RML and random messages for them, valid and not: for the two executors of mappings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

PREFIXES = (
    "@prefix rml: <http://w3id.org/rml/> . @prefix e: <urn:e:> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> ."
)
NAMES = ["a", "b", "c", "long name", "ü", "list"]
TEXTS = [*["plain", "x", "a b", "en", "urn:q"] * 2, "", "x", "a b", "é/ü?", "http://h/p", "urn:q", "en", "de-AT", "e\u0000\u001f\u007f", 'q"\\\n\r\t', "😀", "\ufffe\ue000", "1", "%41", "true", "//", "a" * 200]  # fmt: skip
NUMBERS = ["0", "-0", "7", "-12", "1.50", "-0.0", "1e5", "1E-7", "2.5e+20", "123456789012345678901234567890", "1e400", "0.1", "5e-324", "1e22", "9007199254740993.0", "100.0"]  # fmt: skip
GOOD_TIMES = [
    '"2024-02-29T10:00:00Z"',
    '"1969-12-31t23:59:59.9999+01:00"',
    '"2024-01-01 10:00"',
    "1700000000",
    "1700000000.1239",
    '"12.5"',
]
TIMES = ['"2024-02-29T10:00:00Z"', '"2024-02-30T10:00:00Z"', '"1969-12-31t23:59:59.9999+01:00"', '"2024-01-01 10:00"', '"0000-01-01T00:00"', '"2024-01-01T24:00"', '"2024-01-01T10:00:00.5-0230"', '"2024-01-01T10:00:00.1234567z"', '"2024-01-01T10:00+24:00"', '"2024-01-01T10:00:60"', "1700000000", "1700000000.1239", "-5", "1.5e3", '"12"', '"1.25"', "true", "null", "[1]", "99999999999999999999", "1234567890123456"]  # fmt: skip


def mapping(random: Random) -> dict[str, Any]:
    """Return the settings of a random mapping."""
    kind = random.choice(["json", "json", "json", "ndjson", "csv"])
    maps = " ".join(_triples_map(random, kind, number) for number in range(random.choice([1, 1, 2])))
    settings: dict[str, Any] = {"rml": f"{PREFIXES} {maps}", "format": kind}
    if random.random() < 0.4:
        settings["base"] = "http://base/"
    if kind == "json" and random.random() < 0.15:
        settings["events"] = random.choice(["$.list[*]", "$.list[*]", "$.a", "$[*]", "$.*"])
    if random.random() < 0.25:
        path = "at" if kind == "csv" else random.choice(["$.at", "$.at", "$.a.at", "$.list[-1]"])
        settings["time"] = {"path": path, "unit": random.choice(["iso8601", "iso8601", "s", "s", "ms", "us"])}
    return settings


def _triples_map(random: Random, kind: str, number: int) -> str:
    source = "rml:referenceFormulation rml:CSV" if kind == "csv" else ""
    if kind == "csv" and random.random() < 0.5:
        source += ' ; rml:source [ rml:null "x" , "" ]' if number == 0 else ""
    if kind != "csv" and random.random() < 0.5:
        source += f'rml:iterator "{random.choice(["$", "$.list[*]", "$.a", "$.list[0]", "$.list[*][*]", "$", "$"])}"'
    subject = random.choice([*[_template(random, kind)] * 4, _reference(random, kind), "rml:termType rml:BlankNode", "rml:constant e:s"])  # fmt: skip
    if random.random() < 0.2 and "termType" not in subject:
        subject += f" ; rml:termType rml:{random.choice(['BlankNode', 'URI', 'UnsafeIRI'])}"
    statements = " ; ".join(
        f"rml:predicateObjectMap [ {_statement(random, kind)} ]" for _ in range(random.randint(1, 4))
    )
    return f"<#m{number}> rml:logicalSource [ {source} ] ; rml:subjectMap [ {subject} ] ; {statements} ."


def _statement(random: Random, kind: str) -> str:
    predicate = random.choice(["rml:predicate e:p", "rml:predicate e:p , e:q", f'rml:predicateMap [ rml:template "urn:p:{{{_name(random, kind)}}}" ]'])  # fmt: skip
    objects = " ; ".join(f"rml:objectMap [ {_object(random, kind)} ]" for _ in range(random.choice([1, 1, 2])))
    return f"{predicate} ; {objects}"


def _object(random: Random, kind: str) -> str:
    if random.random() < 0.1:
        return "rml:termType rml:BlankNode"
    if random.random() < 0.1:
        return random.choice(["rml:constant e:o", 'rml:constant "text"@en', 'rml:constant "5"^^xsd:integer'])
    text = random.choice([_template, _reference, _reference])(random, kind)
    more = [*[""] * 12, "rml:datatype xsd:double", "rml:datatype xsd:decimal", "rml:datatype xsd:string", "rml:datatype xsd:dateTime", 'rml:language "en"', f"rml:languageMap [ {_reference(random, kind)} ]", f"rml:datatypeMap [ {_reference(random, kind)} ]", f"rml:datatypeMap [ {_template(random, kind)} ]", "rml:termType rml:IRI", "rml:termType rml:BlankNode", "rml:termType rml:Literal", "rml:termType rml:URI"]  # fmt: skip
    chosen = random.choice(more)
    return f"{text} ; {chosen}" if chosen else text


def _reference(random: Random, kind: str) -> str:
    return f'rml:reference "{_name(random, kind)}"'


def _template(random: Random, kind: str) -> str:
    first = random.choice(["http://h/", "http://h/", *["urn:t:"] * 6, "", "http://h:", "t:/", "x{"]).replace(
        "{", "\\\\{"
    )
    parts = [f"{{{_name(random, kind)}}}" for _ in range(random.choice([1, 1, 2]))]
    return f'rml:template "{first}{random.choice(["", "/", "-"]).join(parts)}{random.choice(["", "/end"])}"'


def _name(random: Random, kind: str) -> str:
    if random.random() < 0.05:
        return "@timestamp"
    if kind == "csv":
        return random.choice([*NAMES[:4], "a", "b", "missing"] if random.random() < 0.1 else ["a", "b", "c", "ü"])
    return random.choice([*["$.a", "$.b", "$.c"] * 3, "$['long name']", "$.ü", "$.a.b", "$.list[*]", "$.list[0]", "$.list[-2]", "$.list[*].a", "$.c[*].b"] if random.random() < 0.97 else ["$.*"])  # fmt: skip


# ---- messages
def message(random: Random, kind: str) -> bytes:
    """Return a random message in a format; it may be invalid."""
    text = _Messages(random, random.choice([0, 0, 0.03])).text(kind)
    data = text.encode("utf-8", "surrogatepass")
    return _damaged(random, data) if random.random() < 0.15 else data


class _Messages:
    """`faults`: the probability that a text is one that JSON or CSV does not allow."""

    def __init__(self, random: Random, faults: float) -> None:
        self._random, self._faults = random, faults
        self._ends = ["\n", "\t\r "]

    def text(self, kind: str) -> str:
        if kind == "csv":
            return self._csv()
        if kind == "json":
            return self._json(0)
        self._ends = ["\t"]
        return "\n".join(self._choice("", "  ", *[self._json(0) for _ in range(4)]) for _ in range(3))

    def _choice(self, *options: str) -> str:
        return self._random.choice(options)

    def _json(self, depth: int) -> str:
        shape = self._random.random()
        if depth == 0 and shape < 0.05:
            return self._array(depth)
        if depth == 0 or (depth < 4 and shape < 0.1):
            chosen = [*"abc", *self._random.sample([*NAMES[3:], "at", "other", "x" * 9], self._random.randint(2, 6))]
            chosen += self._random.choices(NAMES, k=self._random.choice([0, 0, 0, 1, 12]))
            members = [f"{self._quoted(name)}:{self._blanks()}{self._member(name, depth)}" for name in chosen]
            return "{" + f"{self._blanks()}, ".join(members) + "}" + self._blanks()
        return self._array(depth) if depth < 4 and shape < 0.2 else self._scalar()

    def _array(self, depth: int) -> str:
        return f"[{', '.join(self._json(depth + 1) for _ in range(self._random.randint(0, 4)))}]"

    def _member(self, name: str, depth: int) -> str:
        if name == "at":
            return self._choice(*(GOOD_TIMES if self._random.random() < 0.7 else TIMES))
        if name == "list" and self._random.random() < 0.8:
            return self._array(depth)
        return self._scalar() if self._random.random() < 0.9 else self._json(depth + 1)

    def _scalar(self) -> str:
        if self._random.random() < self._faults:
            return self._choice("1" * 4400, "1.", "01", "NaN", "-", "+1", "1e", ".5", "tru", "Infinity", "nul", "1 2")
        text = self._quoted(self._choice(*TEXTS))
        return self._choice(text, text, self._choice(*NUMBERS), self._choice("true", "false", "null"))

    def _quoted(self, text: str) -> str:
        if self._random.random() < self._faults:
            return self._choice('"\\ud800"', '"\\x"', '"a\tb"', '"\\u12"')
        return json.dumps(text, ensure_ascii=self._random.random() < 0.5)

    def _blanks(self) -> str:
        return self._choice("", "", " ", *self._ends)

    def _csv(self) -> str:
        names = self._random.sample(["a", "b", "c", "ü", "long name", "at"], self._random.choice([4, 5, 6, 6]))
        end = self._choice("\n", "\r\n", "\r")
        rows = [names] + [[self._cell(name) for name in names] for _ in range(self._random.randint(1, 4))]
        if self._random.random() < self._faults:
            rows.append(["x"] * self._random.randint(1, 5))
        lines = [",".join(self._written(cell) for cell in row) for row in rows]
        return end.join(lines) + self._choice("", end, end + end, end + "\n")

    def _cell(self, name: str) -> str:
        if name == "at":
            return self._choice(*(GOOD_TIMES if self._random.random() < 0.7 else TIMES)).strip('"')
        return self._choice(*TEXTS, *NUMBERS[:9])

    def _written(self, cell: str) -> str:
        if self._random.random() < self._faults:
            return self._choice('"open', '"a"b', 'a"b', ' "x"')
        if any(c in cell for c in ',"\r\n') or self._random.random() < 0.2:
            return '"' + cell.replace('"', '""') + '"'
        return cell


def _damaged(random: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randint(1, 3)):
        at = random.randrange(len(changed) + 1)
        match random.randrange(4):
            case 0:
                del changed[at : at + random.randint(1, 5)]
            case 1:
                changed[at:at] = random.choice([b"\x00", b"\xff", b"\xc3", b",", b"]", b"}", b'"', b"\\", b"1", b"0", b" ", b"\xef\xbb\xbf", b"\x1f", b"e", b".", b"-", b"tru", b"{", b"["])  # fmt: skip
            case 2:
                changed[at : at + 1] = bytes([random.randrange(256)])
            case _:
                changed += changed[at : at + 9]
    return bytes(changed)
