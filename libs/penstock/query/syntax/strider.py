"""Texts of Strider (ISWC'17 §3.1). Such a text contains several queries over one stream. The text does not name the
stream.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.query.text_faults import Fault, query_error
from penstock.query.translation.durations import duration_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>\s+|\#[^\n\r]*)
      | (?P<quoted><[^<>"{}|^`\\\x00-\x20]*> | '''(?:\\.|(?!''').)*''' | \"\"\"(?:\\.|(?!\"\"\").)*\"\"\"
          | '(?:\\.|[^'\\\n\r])*' | "(?:\\.|[^"\\\n\r])*")
      | (?P<word>[?$]?[\w.:-]+)
      | (?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_UNITS = {
    "ms": ("ms", "milli", "millis", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "d": ("d", "day", "days"),
}
_SPELLINGS = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings}
_OPEN, _CLOSED = {"[": "]", "{": "}", "(": ")"}, frozenset("]})")
_FORMS = frozenset(("SELECT", "ASK", "CONSTRUCT", "DESCRIBE"))
_OFF = "OFF"


@dataclass(frozen=True, slots=True)
class StriderText:
    """The queries of a text of Strider, in Penstock's own form.

    `queries`: the text of each query by its QUERYID, in order. `batch_ms`: the interval of BATCH in ms, for the
    declaration of the stream. None if the text has no BATCH.
    """

    queries: dict[str, str]
    batch_ms: int | None


@dataclass(frozen=True, slots=True)
class _Piece:
    """A token. `kind`: quoted, word or sign."""

    kind: str
    text: str
    at: int

    @property
    def end(self) -> int:
        return self.at + len(self.text)

    @property
    def upper(self) -> str:
        return self.text.upper()


def parse_strider(text: str, stream: str) -> StriderText:
    """Return the queries of a text of Strider as registrations over the stream with IRI `stream`.

    The window of each query has the range of WINDOW and the step of SLIDE. A query whose REASONING is not OFF gets WITH
    ENTAILMENT RDFS. Each line of a query keeps the line number that it has in the text. QueryError, with the position,
    if the text is not a text of Strider. The queries themselves are checked when they are registered.
    """
    try:
        return _Reader(text, stream).read()
    except Fault as fault:
        raise query_error(fault, text) from None


class _Reader:
    def __init__(self, text: str, stream: str) -> None:
        self._text = text
        self._stream = stream
        self._pieces = list(_pieces(text))
        self._next = 0
        self._durations: dict[str, int] = {}
        self._queries: dict[str, str] = {}

    def read(self) -> StriderText:
        self._keyword("STREAMING")
        self._sign("{")
        while not self._is("}"):
            self._duration()
        self._sign("}")
        if "WINDOW" not in self._durations:
            raise Fault("STREAMING needs a WINDOW, such as WINDOW [10 Seconds]", 0, "STREAMING")
        while self._peek() is not None:
            self._keyword("REGISTER")
            self._sign("{")
            while not self._is("}"):
                self._query()
            self._sign("}")
        if not self._queries:
            raise Fault("the text registers no query: REGISTER { QUERYID [ … ] SPARQL [ … ] }", len(self._text))
        return StriderText(self._queries, self._durations.get("BATCH"))

    # ---- parts
    def _duration(self) -> None:
        name = self._keyword("WINDOW", "SLIDE", "BATCH")
        if name.upper in self._durations:
            raise Fault(f"{name.upper} stands twice", name.at, name.text)
        inside = self._bracket()
        written = "".join(piece.text for piece in inside)
        at = inside[0].at if inside else name.at
        match = re.fullmatch(r"([0-9.]+)([A-Za-z]+)", written)
        unit = _SPELLINGS.get(match[2].lower()) if match else None
        if match is None or unit is None:
            raise Fault(f"'{written}' is not a duration such as 10 Seconds", at, written)
        try:
            self._durations[name.upper] = duration_ms(match[1] + unit)
        except ValueError as error:
            raise Fault(str(error), at, written) from None

    def _query(self) -> None:
        start = self._keyword("QUERYID")
        inside = self._bracket()
        if len(inside) != 1 or not re.fullmatch(r"[A-Za-z_][\w.-]*", inside[0].text):
            raise Fault("QUERYID needs a name, such as QUERYID [Q8]", start.at, start.text)
        name = inside[0].text
        if name in self._queries:
            raise Fault(f"two queries have the name {name}", inside[0].at, name)
        entails = False
        if self._is("REASONING"):
            at = self._keyword("REASONING").at
            chosen = self._bracket()
            if len(chosen) != 1 or chosen[0].kind == "sign":
                raise Fault("REASONING names one ontology, or is OFF, such as REASONING [LUBM]", at, "REASONING")
            entails = chosen[0].upper != _OFF
        self._keyword("SPARQL")
        self._queries[name] = self._registration(name, self._bracket(), entails=entails)

    def _registration(self, name: str, body: list[_Piece], *, entails: bool) -> str:
        """Return the text of a query in Penstock's own form."""
        if not body:
            raise Fault(f"the query {name} has no text", self._pieces[self._next - 1].at, "]")
        first = next((i for i, piece in enumerate(body) if piece.upper in _FORMS), None)
        if first is None:
            raise Fault("expected SELECT, ASK, CONSTRUCT or DESCRIBE", body[0].at, body[0].text)
        split = _pattern_at(body, first)
        step_ms = self._durations.get("SLIDE", self._durations["WINDOW"])
        clauses = f" FROM STREAM <{self._stream}> [RANGE {self._durations['WINDOW']}ms STEP {step_ms}ms] "
        if entails:
            clauses += "WITH ENTAILMENT RDFS "
        begin, middle, end = body[0].at, body[first].at, body[-1].end
        lines = "\n" * self._text.count("\n", 0, begin)
        head, select, rest = self._text[begin:middle], self._text[middle:split], self._text[split:end]
        return f"{lines}{head}REGISTER QUERY {name} AS {select}{clauses}{rest}"

    # ---- tokens
    def _peek(self) -> _Piece | None:
        return self._pieces[self._next] if self._next < len(self._pieces) else None

    def _is(self, text: str) -> bool:
        piece = self._peek()
        return piece is not None and piece.kind != "quoted" and piece.upper == text

    def _keyword(self, *words: str) -> _Piece:
        piece = self._peek()
        if piece is None or piece.kind == "quoted" or piece.upper not in words:
            expected = " or ".join(words)
            at = len(self._text) if piece is None else piece.at
            found = "the end of the text" if piece is None else f"'{piece.text}'"
            raise Fault(f"expected {expected}, found {found}", at, piece.text if piece else "")
        self._next += 1
        return piece

    def _sign(self, sign: str) -> _Piece:
        return self._keyword(sign)

    def _bracket(self) -> list[_Piece]:
        """Return the tokens between an opening bracket and the matching closing bracket."""
        opened = [self._sign("[")]
        begin = self._next
        while opened:
            piece = self._peek()
            if piece is None:
                raise Fault(f"this {opened[-1].text} is not closed", opened[-1].at, opened[-1].text)
            if piece.kind == "sign" and piece.text in _OPEN:
                opened.append(piece)
            elif piece.kind == "sign" and piece.text in _CLOSED and _OPEN[opened.pop().text] != piece.text:
                raise Fault(f"unexpected '{piece.text}'", piece.at, piece.text)
            self._next += 1
        return self._pieces[begin : self._next - 1]


def _pieces(text: str) -> Iterator[_Piece]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "space":
            yield _Piece(str(match.lastgroup), match[0], match.start())


def _pattern_at(body: list[_Piece], first: int) -> int:
    """Return the offset of WHERE or of the pattern's brace. Dataset clauses stand before this offset."""
    depth = 0
    template = body[first].upper == "CONSTRUCT"
    for piece in body[first + 1 :]:
        if depth == 0 and piece.kind == "word" and piece.upper in ("WHERE", "FROM"):
            return piece.at
        if piece.kind != "sign":
            continue
        if piece.text == "{" and depth == 0 and not template:
            return piece.at
        depth += (piece.text in _OPEN) - (piece.text in _CLOSED)
        if piece.text == "}" and depth == 0:
            template = False
    return body[-1].end
