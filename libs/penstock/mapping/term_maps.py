"""Compiles term maps: constants, references and templates, each with a term type, a datatype and a language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from penstock.core._native import check_term
from penstock.errors import DataError
from penstock.mapping.json_path import parse_path
from penstock.mapping.mapping_graph import RML
from penstock.mapping.program import Reference, Source, Term
from penstock.mapping.term_makers import ABSOLUTE, escaped
from penstock.rdf.terms import BLANK, IRI, LITERAL, RDF_LANG_STRING, XSD_STRING

if TYPE_CHECKING:
    from penstock.core._native import TermTuple
    from penstock.mapping.mapping_graph import MappingGraph
    from penstock.mapping.mapping_limits import MappingLimits
    from penstock.mapping.program import TermKind

Position: TypeAlias = Literal["subject", "predicate", "object", "graph", "text", "datatype", "language"]
_KINDS: Final[dict[str, TermKind]] = {
    f"{RML}IRI": "iri",
    f"{RML}URI": "uri",
    f"{RML}UnsafeIRI": "unsafe",
    f"{RML}UnsafeURI": "unsafe",
    f"{RML}BlankNode": "blank",
    f"{RML}Literal": "literal",
}
_IRIS: Final = frozenset({"iri", "uri", "unsafe"})
_ALLOWED: Final[dict[str, frozenset[str]]] = {
    "subject": _IRIS | {"blank"},
    "predicate": _IRIS,
    "object": _IRIS | {"blank", "literal"},
    "graph": _IRIS,
    "text": frozenset({"literal"}),
    "datatype": _IRIS,
    "language": frozenset({"literal"}),
}
_HEADERS: Final = "@headers."
_STRING: Final = Term("iri", constant=f"<{XSD_STRING}>")


class TermMaps:
    """Compiles the term maps of one mapping."""

    def __init__(self, graph: MappingGraph, limits: MappingLimits) -> None:
        self._graph = graph
        self._limits = limits
        self._number = 0

    def term(self, node: TermTuple, position: Position, source: Source, base: str | None, place: str) -> Term:
        """Return the instruction of a term map. `position`: the position of the term in a triple."""
        graph = self._graph
        given = {name: graph.one(node, name, place) for name in ("constant", "reference", "template")}
        kind = self._kind(node, position, given, place)
        if sum(value is not None for value in given.values()) > 1:
            raise graph.fault(place, "it has several of rml:constant, rml:reference and rml:template")
        datatype = self._part(node, "datatype", source, base, place)
        language = self._part(node, "language", source, base, place)
        if datatype is not None and language is not None:
            raise graph.fault(place, "a literal has either a datatype or a language")
        if kind != "literal" and (datatype or language):
            raise graph.fault(place, "only a literal has a datatype or a language")
        if given["constant"] is not None:
            return self._typed_constant(given["constant"], kind, datatype, place)
        text = graph.text(node, "reference", place)
        parts: tuple[str | Reference, ...] = ()
        if text is not None:
            parts = (self.reference(text, source, place),)
        elif (template := graph.text(node, "template", place)) is not None:
            parts = self._template(template, source, place)
            self._check_template(template, parts, kind, place)
        elif kind != "blank":
            raise graph.fault(place, "it needs rml:constant, rml:reference or rml:template")
        if position == "text":
            datatype = _STRING
        return self._counted(
            Term(kind, parts, text is None, None, datatype, language, base if kind in _IRIS else None, place)
        )

    def _kind(self, node: TermTuple, position: Position, given: dict[str, TermTuple | None], place: str) -> TermKind:
        graph = self._graph
        named = graph.text(node, "termType", place)
        if named is not None:
            kind = _KINDS.get(named)
            if kind is None:
                raise graph.fault(place, f"unknown rml:termType <{named}>", named)
        elif (constant := given["constant"]) is not None and position != "text":
            kind = {IRI: "iri", BLANK: "blank", LITERAL: "literal"}[constant[0]]  # type: ignore[assignment]
        elif position in ("text", "language") or (
            position == "object"
            and (
                given["reference"] is not None
                or any(graph.all(node, name) for name in ("language", "languageMap", "datatype", "datatypeMap"))
            )
        ):
            kind = "literal"
        else:
            kind = "iri"
        assert kind is not None
        if kind not in _ALLOWED[position]:
            what = {"blank": "a blank node", "literal": "a literal"}.get(kind, "an IRI")
            raise graph.fault(place, f"a {position} cannot be {what}")
        return kind

    def _part(
        self, node: TermTuple, name: Literal["datatype", "language"], source: Source, base: str | None, place: str
    ) -> Term | None:
        place = f"{place}, {name}"
        constant, described = self._graph.one(node, name, place), self._graph.one(node, f"{name}Map", place)
        if constant is not None and described is not None:
            raise self._graph.fault(place, f"it has both rml:{name} and rml:{name}Map")
        if described is not None:
            return self.term(described, name, source, base, place)
        if constant is None:
            return None
        if name == "datatype":
            return self.constant(constant, "iri", place)
        try:
            check_term(LITERAL, "", RDF_LANG_STRING, constant[1])
        except DataError as error:
            raise self._graph.fault(place, f"{constant[1]!r}: {error}", constant) from error
        return Term("literal", constant=f'"{constant[1]}"', place=place)

    # ---- constants
    def constant(self, value: TermTuple, kind: Literal["iri", "any"], place: str) -> Term:
        """Return the instruction of a constant. `kind`: "iri" if it must be an IRI."""
        if kind == "iri" and value[0] != IRI:
            raise self._graph.fault(place, "it must be an IRI", value)
        return self._typed_constant(value, {IRI: "iri", BLANK: "blank", LITERAL: "literal"}[value[0]], None, place)  # type: ignore[arg-type]

    @staticmethod
    def predicate_constant(text: str) -> Term:
        """Return the instruction of a constant IRI, given as N-Triples text. An empty text means the default graph."""
        return Term("iri", constant=text)

    def _typed_constant(self, value: TermTuple, kind: TermKind, datatype: Term | None, place: str) -> Term:
        number, lexical, own, lang = value
        allowed = {IRI: _IRIS, BLANK: {"blank"}, LITERAL: {"literal"}}[number]
        if kind not in allowed:
            raise self._graph.fault(place, f"the constant {lexical!r} is not of the term type of the term map", value)
        if number == IRI:
            text = f"<{lexical}>"
        elif number == BLANK:
            text = f"_:c{lexical.encode().hex()}"
        elif lang:
            text = f'"{escaped(lexical)}"@{lang}'
        elif datatype is not None and datatype.constant is not None:
            text = f'"{escaped(lexical)}"^^{datatype.constant}'
        else:
            text = f'"{escaped(lexical)}"' + ("" if own == XSD_STRING else f"^^<{own}>")
        return self._counted(Term(kind, constant=text, place=place))

    # ---- references
    def reference_text(self, text: str, source: Source, place: str) -> Term:
        """Return the instruction that makes a plain literal from the value of a reference."""
        return self._counted(Term("literal", (self.reference(text, source, place),), datatype=_STRING, place=place))

    def reference(self, text: str, source: Source, place: str) -> Reference:
        """Return a reference to a part of the message (`@key`, `@headers.NAME`, `@timestamp`), to a JSON path, or to a
        CSV column.
        """
        if text in ("@key", "@timestamp"):
            return Reference("key" if text == "@key" else "timestamp", text)
        if text.startswith(_HEADERS) and len(text) > len(_HEADERS):
            return Reference("header", text, (), text[len(_HEADERS) :])
        if source.formulation == "csv":
            return Reference("column", text, (), text)
        try:
            return Reference("path", text, parse_path(text))
        except DataError as error:
            raise self._graph.fault(place, str(error), text) from error

    def _template(self, template: str, source: Source, place: str) -> tuple[str | Reference, ...]:
        """Return the parts of a template. A backslash escapes a brace or another backslash."""
        parts: list[str | Reference] = []
        text, inside, at = "", False, 0
        while at < len(template):
            character = template[at]
            if character == "\\":
                at += 1
                if at == len(template) or template[at] not in "{}\\":
                    raise self._graph.fault(
                        place, f"template {template!r}: a backslash must escape {{, }} or \\", template
                    )
                text += template[at]
            elif character == ("}" if inside else "{"):
                if inside and not text:
                    raise self._graph.fault(place, f"template {template!r}: an empty reference", template)
                if inside or text:
                    parts.append(self.reference(text, source, place) if inside else text)
                text, inside = "", not inside
            elif character in "{}":
                raise self._graph.fault(place, f"template {template!r}: a brace without its partner", template)
            else:
                text += character
            at += 1
        if inside:
            raise self._graph.fault(place, f"template {template!r}: a brace is not closed", template)
        return (*parts, text) if text else tuple(parts)

    def _check_template(self, template: str, parts: tuple[str | Reference, ...], kind: TermKind, place: str) -> None:
        """Raise DataError if a template of an IRI has constant texts that cannot be in an IRI."""
        if kind not in ("iri", "uri"):
            return
        sample = "".join(part if isinstance(part, str) else "x" for part in parts)
        try:
            check_term(IRI, sample if ABSOLUTE.match(sample) else f"urn:x/{sample}")
        except DataError as error:
            raise self._graph.fault(place, f"template {template!r}: {error}", template) from error

    def _counted(self, term: Term) -> Term:
        self._number += 1
        if self._number > self._limits.max_terms:
            raise DataError(f"the mapping has more than {self._limits.max_terms} term maps (max_terms)")
        return term
