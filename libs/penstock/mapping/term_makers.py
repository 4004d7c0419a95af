"""Functions that make the terms of a program's instructions, as N-Triples."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from penstock.core._native import check_term
from penstock.errors import DataError
from penstock.mapping.json_path import all_values, is_single, single_value
from penstock.mapping.message_records import RealNumber
from penstock.rdf.terms import IRI, LITERAL, RDF_LANG_STRING, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.mapping.mapping_limits import MappingLimits
    from penstock.mapping.message_records import SourceMessage
    from penstock.mapping.program import Reference, Term

One: TypeAlias = "Callable[[Any, SourceMessage], str | None]"
"""A function that makes a term in N-Triples, or a text, from a record and its message. The function returns None if
there is no value.
"""
Many: TypeAlias = "Callable[[Any, SourceMessage], list[str]]"

XSD = "http://www.w3.org/2001/XMLSchema#"
_INTEGER, _DOUBLE, _BOOLEAN = f"^^<{XSD}integer>", f"^^<{XSD}double>", f"^^<{XSD}boolean>"
_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f]')
_PLAIN_TEXT = re.compile(r"[A-Za-z0-9._~-]*")
ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LABEL = re.compile(r"[A-Za-z0-9]+")
_NOT_UNRESERVED = re.compile(
    "[^A-Za-z0-9._~\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    + "".join(f"{chr(plane)}-{chr(plane + 0xFFFD)}" for plane in range(0x10000, 0xE0000, 0x10000))
    + "\U000e1000-\U000efffd-]"
)


class MakerFactory:
    """Makes functions from the term instructions of a mapping program. Each function computes terms from a record."""

    def __init__(self, limits: MappingLimits) -> None:
        self._limits = limits

    def one(self, term: Term) -> One | None:
        """Return the function that makes the term of a record. None if a record can have several such terms."""
        if term.constant is not None:
            constant = term.constant
            return lambda _, __: constant
        parts = [self._single(part, term) if not isinstance(part, str) else part for part in term.parts]
        if any(part is None for part in parts) or any(
            each is not None and self.one(each) is None for each in (term.datatype, term.language)
        ):
            return None
        finish = self._finished(term)
        if len(parts) == 1 and not term.template and not isinstance(parts[0], str):
            value = parts[0]
            assert value is not None
            return lambda record, message: None if (v := value(record, message)) is None else finish(v, record, message)
        text, encode = _text_of(term), _encoder(term)
        made = [part if isinstance(part, str) or part is None else _texts(part, text, encode) for part in parts]
        if len(made) == 2 and isinstance(made[0], str) and _is_safe(term):
            return _prefixed(f"<{made[0]}", made[1])  # type: ignore[arg-type]

        def joined(record: Any, message: SourceMessage) -> str | None:
            texts = []
            for part in made:
                piece = part if type(part) is str else part(record, message)  # type: ignore[misc,operator]
                if piece is None:
                    return None
                texts.append(piece)
            return finish("".join(texts), record, message)

        return joined

    def many(self, term: Term) -> Many:
        """Return the function that makes all terms of a record."""
        one = self.one(term)
        if one is not None:
            make = one
            return lambda record, message: [] if (made := make(record, message)) is None else [made]
        text, encode, most = _text_of(term), _encoder(term), self._limits.max_values
        finish = self._finished(term)
        if len(term.parts) == 1 and not term.template and not isinstance(term.parts[0], str):
            values = self._plural(term.parts[0], term)
            return lambda record, message: [
                made
                for v in values(record, message)
                if v is not None and (made := finish(v, record, message)) is not None
            ]
        lists = [part if isinstance(part, str) else self._plural(part, term) for part in term.parts]

        def combined(record: Any, message: SourceMessage) -> list[str]:
            choices: list[list[str]] = []
            number = 1
            for part in lists:
                if isinstance(part, str):
                    choices.append([part])
                else:
                    choices.append([encode(text(v)) for v in part(record, message) if v is not None])
                number *= len(choices[-1])
            if number > most:
                raise DataError(f"{term.place}: more than {most} combinations of values (max_values)")
            made = [finish("".join(pieces), record, message) for pieces in product(*choices)]
            return [each for each in made if each is not None]

        return combined

    # ---- values
    def _single(self, reference: Reference, term: Term) -> Callable[[Any, SourceMessage], Any] | None:
        """Return the function for a reference with at most one value. None if the reference can have several values."""
        match reference.source:
            case "path":
                if not is_single(reference.path):
                    return None
                find = single_value(reference.path)
                return lambda record, _: find(record)
            case "column":
                return _column(reference.name, term.place)
            case "key":
                return lambda _, message: None if message.key is None else _decoded(message.key, "key")
            case "header":
                name = reference.name.lower()
                return lambda _, message: (
                    None if (found := message.headers.get(name)) is None else _decoded(found, f"header {name!r}")
                )
            case "timestamp":
                return lambda _, message: message.timestamp_ms

    def _plural(self, reference: Reference, term: Term) -> Callable[[Any, SourceMessage], list[Any]]:
        single = self._single(reference, term)
        if single is not None:
            find_one = single
            return lambda record, message: [find_one(record, message)]
        find = all_values(reference.path, self._limits.max_values)

        def values(record: Any, _: SourceMessage) -> list[Any]:
            try:
                return find(record)
            except DataError as error:
                raise DataError(f"{reference.text}: {error}") from error

        return values

    # ---- from a value to a term
    def _finished(self, term: Term) -> Callable[[Any, Any, SourceMessage], str | None]:
        match term.kind:
            case "literal":
                return self._literal(term)
            case "blank":
                text = _text_of(term)
                return lambda value, _, __: _blank(text(value))
            case _:
                return _iri(term)

    def _literal(self, term: Term) -> Callable[[Any, Any, SourceMessage], str | None]:
        text = _text_of(term)
        if term.language is not None:
            return self._tagged(term, term.language)
        if term.datatype is None:
            return (
                (lambda value, _, __: f'"{escaped(value)}"')
                if term.template or len(term.parts) > 1
                else (lambda value, _, __: natural(value, text))
            )
        if term.datatype.constant is not None:
            tail = "" if term.datatype.constant == f"<{XSD_STRING}>" else f"^^{term.datatype.constant}"
            return lambda value, _, __: f'"{escaped(text(value))}"{tail}'
        datatype = self.many(term.datatype)

        def typed(value: Any, record: Any, message: SourceMessage) -> str | None:
            found = datatype(record, message)
            return f'"{escaped(text(value))}"^^{found[0]}' if found else None

        return typed

    def _tagged(self, term: Term, language: Term) -> Callable[[Any, Any, SourceMessage], str | None]:
        text, tags = _text_of(term), self.many(language)

        def tagged(value: Any, record: Any, message: SourceMessage) -> str | None:
            found = tags(record, message)
            if not found:
                return None
            tag = found[0][1:-1]  # made as a literal
            try:
                _check_language(tag)
            except DataError as error:
                raise DataError(f"{language.place}: {error}") from error
            return f'"{escaped(text(value))}"@{tag}'

        return tagged


def escaped(text: str) -> str:
    """Return a text with the escapes of N-Triples."""
    return _ESCAPED.sub(_escape, text) if _ESCAPED.search(text) else text


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def natural(value: Any, text: Callable[[Any], str]) -> str:
    """Return the literal of a JSON value for which the mapping has no datatype (RML-IO, natural datatypes)."""
    kind = type(value)
    if kind is str:
        return f'"{escaped(value)}"'
    if kind is int:
        return f'"{value}"{_INTEGER}'
    if kind is bool:
        return f'"{text(value)}"{_BOOLEAN}'
    if kind is RealNumber:
        return f'"{canonical_double(value)}"{_DOUBLE}'
    return f'"{escaped(text(value))}"'


def canonical_double(number: str) -> str:
    """Return the canonical form of an xsd:double. It has one digit before the point, at least one digit after the
    point, and an exponent.
    """
    value = float(number)
    if value in (float("inf"), float("-inf")):
        return "INF" if value > 0 else "-INF"
    mantissa, _, exponent = f"{value!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.removeprefix("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    leading = len(whole + fraction) - len(digits)
    if not digits.strip("0"):
        return f"{sign}0.0E0"
    power = int(exponent or 0) + len(whole) - 1 - leading
    return f"{sign}{digits[0]}.{digits[1:].rstrip('0') or '0'}E{power}"


def _text_of(term: Term) -> Callable[[Any], str]:
    references = ", ".join(part.text for part in term.parts if not isinstance(part, str))

    def text(value: Any) -> str:
        kind = type(value)
        if kind is str or kind is RealNumber:
            return value  # type: ignore[no-any-return]
        if kind is bool:
            return "true" if value else "false"
        if kind is int:
            return str(value)
        found = "an object" if kind is dict else "an array"
        raise DataError(f"{references}: {found} where {term.place} needs one value")

    return text


def _texts(
    value: Callable[[Any, SourceMessage], Any], text: Callable[[Any], str], encode: Callable[[str], str]
) -> Callable[[Any, SourceMessage], str | None]:
    def make(record: Any, message: SourceMessage) -> str | None:
        found = value(record, message)
        if found is None:
            return None
        return encode(found if type(found) is str else text(found))

    return make


def _encoder(term: Term) -> Callable[[str], str]:
    if not term.template or term.kind not in ("iri", "uri"):
        return lambda text: text
    if term.kind == "uri":
        return lambda text: text if _PLAIN_TEXT.fullmatch(text) else quote(text, safe="-._~")
    return lambda text: text if _PLAIN_TEXT.fullmatch(text) else _NOT_UNRESERVED.sub(_percent, text)


def _percent(found: re.Match[str]) -> str:
    return quote(found.group(), safe="")


def _iri(term: Term) -> Callable[[Any, Any, SourceMessage], str | None]:
    text, base, place = _text_of(term), term.base, term.place
    safe = _is_safe(term)

    def iri(value: Any, _: Any, __: SourceMessage) -> str:
        found = value if type(value) is str else text(value)
        if safe:
            return f"<{found}>"
        if not ABSOLUTE.match(found):
            if base is None:
                raise DataError(f"{place}: {found[:80]!r} is not an absolute IRI, and the mapping has no base IRI")
            found = base + found
        try:
            _check_iri(found)
        except DataError as error:
            raise DataError(f"{place}: {error}") from error
        return f"<{found}>"

    return iri


def _is_safe(term: Term) -> bool:
    """Return whether a term is an IRI for all values of its references. This is the case if the term begins with the
    scheme of an IRI and the values are percent-encoded.
    """
    first = term.parts[0] if term.parts else ""
    return term.template and term.kind in ("iri", "uri") and isinstance(first, str) and bool(ABSOLUTE.match(first))


def _prefixed(prefix: str, value: One) -> One:
    """Return the function for the usual template of an IRI: a constant, and one reference."""

    def make(record: Any, message: SourceMessage) -> str | None:
        found = value(record, message)
        return None if found is None else f"{prefix}{found}>"

    return make


def _blank(text: str) -> str:
    if _LABEL.fullmatch(text):
        return f"_:b{text}"
    return f"_:h{text.encode('utf-8', 'surrogatepass').hex()}"


def _column(name: str, place: str) -> Callable[[Any, SourceMessage], Any]:
    def find(record: Any, _: SourceMessage) -> Any:
        try:
            return record[name]
        except KeyError:
            raise DataError(f"{place}: the CSV text has no column {name!r}") from None

    return find


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"the message's {what} is not UTF-8") from error


@lru_cache(maxsize=4_096)
def _check_iri(iri: str) -> None:
    try:
        check_term(IRI, iri)
    except UnicodeEncodeError as error:
        raise DataError(f"not Unicode text: {error.reason}") from error


@lru_cache(maxsize=256)
def _check_language(tag: str) -> None:
    try:
        check_term(LITERAL, "", RDF_LANG_STRING, tag)
    except UnicodeEncodeError as error:
        raise DataError("the language tag is not Unicode text") from error
