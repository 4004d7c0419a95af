"""The stream clauses of a query text, found by regular expressions. They suffice for the texts of the tests."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field

STORED = "urn:x-penstock:stored"
UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True)
class WindowSpec:
    """`range_ms` None is `[ALL]`; `count` > 0 makes it a count window (`step` then counts tuples); `now`
    takes Δ for both.
    """

    name: str
    stream: str
    range_ms: int | None = None
    step: int = 0
    count: int = 0
    now: bool = False
    in_default: bool = False
    by_graph: bool = False
    removed: bool = False


@dataclass
class Header:
    """`sparql` is the query without its stream and dataset clauses, with GRAPH in place of WINDOW."""

    kind: str = "QUERY"
    name: str | None = None
    computed_every: int | None = None
    nonempty: bool = False
    starting_at: int | None = None
    windows: list[WindowSpec] = field(default_factory=list)
    default_graphs: list[str] = field(default_factory=list)
    named_graphs: list[str] = field(default_factory=list)
    sparql: str = ""

    @property
    def publishes(self) -> bool:
        return self.kind != "QUERY" and self.name is not None and bool(re.search(r"\bCONSTRUCT\b", self.sparql))

    @property
    def r2s(self) -> str:
        return self.kind if self.kind in ("ISTREAM", "DSTREAM") else "RSTREAM"


def duration(text: str) -> int:
    text = text.strip().strip('"')
    iso = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", text)
    if iso:
        days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
        return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
    number, unit = re.fullmatch(r"(\d+)\s*([a-z]+)", text.lower()).groups()  # type: ignore[union-attr]
    return int(number) * UNIT_MS[unit]


def _instant(text: str) -> int:
    if re.fullmatch(r"\d+", text):
        return int(text)
    moment = datetime.datetime.fromisoformat(text.split("^^", maxsplit=1)[0].strip('"'))
    return int(moment.timestamp() * 1000)


_REGISTER = re.compile(
    r"\bREGISTER\s+(?P<kind>QUERY|STREAM|RSTREAM|ISTREAM|DSTREAM)\s+(?P<name><[^>]*>|[\w.-]+)"
    r"(?:\s+COMPUTED\s+EVERY\s+(?P<every>\d+\s*[a-z]+|PT?\w+))?(?:\s+REPORT\s+(?P<report>EVERY|NONEMPTY))?"
    r"(?:\s+STARTING\s+AT\s+(?P<at>\S+))?\s+AS\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"\b(?P<removed>REMOVED\s+)?FROM\s+(?P<named>NAMED\s+)?(?:(?P<word>STREAM)\s+|WINDOW\s+<(?P<window>[^>]*)>\s+ON\s+)?<(?P<iri>[^>]*)>"
    r"\s*(?:\[(?P<spec>[^\]]*)\])?",
    re.IGNORECASE,
)


def parse(text: str) -> Header:
    header = Header()
    registered = _REGISTER.search(text)
    if registered:
        header.kind, header.name = registered["kind"].upper(), registered["name"].strip("<>")
        header.computed_every = duration(registered["every"]) if registered["every"] else None
        header.nonempty = (registered["report"] or "").upper() == "NONEMPTY"
        header.starting_at = _instant(registered["at"]) if registered["at"] else None
        text = text[: registered.start()] + text[registered.end() :]
    for clause in _CLAUSE.finditer(text):
        if clause["spec"] is not None:
            header.windows.append(_window(clause))
        else:
            (header.named_graphs if clause["named"] else header.default_graphs).append(clause["iri"])
    header.sparql = re.sub(r"\bWINDOW(\s*<)", r"GRAPH\1", _CLAUSE.sub("", text))
    return header


def _window(clause: re.Match[str]) -> WindowSpec:
    stream, spec = clause["iri"], clause["spec"].strip()
    name = clause["window"] or stream
    where = {"in_default": not clause["named"], "by_graph": bool(clause["named"]) and not clause["window"]}
    where["removed"] = bool(clause["removed"])
    upper = spec.upper()
    if upper == "NOW":
        return WindowSpec(name, stream, now=True, **where)
    counted = re.fullmatch(r"(?:TRIPLES|ELEMENTS)\s+(\d+)(?:\s+STEP\s+(\d+))?", upper)
    if counted:
        return WindowSpec(name, stream, count=int(counted[1]), step=int(counted[2] or counted[1]), **where)
    timed = re.fullmatch(
        r"(?:RANGE\s+(?P<range>.+?)|ALL)(?:\s+(?:STEP|SLIDE)\s+(?P<step>.+)|\s+TUMBLING)?", spec, re.IGNORECASE
    )
    assert timed is not None, spec
    range_ms = duration(timed["range"]) if timed["range"] else None
    step = duration(timed["step"]) if timed["step"] else range_ms
    assert step is not None, spec
    return WindowSpec(name, stream, range_ms=range_ms, step=step, **where)
