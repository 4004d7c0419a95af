"""Compiles CONSTRUCT queries over messages to a program. BIND expressions refer to values such as `$.sensor`."""

from __future__ import annotations

import re
from itertools import chain, product
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, Final, Literal

from penstock.core._native import check_term
from penstock.errors import DataError, QueryError
from penstock.mapping.json_path import is_single, parse_path
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits
from penstock.mapping.program import Program, Reference, Rule, Source, Statement, Term
from penstock.mapping.term_makers import ABSOLUTE, escaped
from penstock.query.algebra import tree
from penstock.query.ir import ContinuousQuery, Dataset, Form
from penstock.query.parser import parse
from penstock.rdf.terms import IRI, LITERAL, RDF_LANG_STRING, XSD_STRING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.mapping.program import TermKind

_TOKEN: Final = re.compile(
    r"""
      # Strings. One without an end makes the query invalid; its rest is not read again.
      \"{3}(?:[^\\]|\\.)*?(?:\"{3}|\\?\Z) | '{3}(?:[^\\]|\\.)*?(?:'{3}|\\?\Z)
    | "(?:[^"\\\n]|\\.)*"? | '(?:[^'\\\n]|\\.)*'?
    | <[^<>"{}|^`\\\x00-\x20]*> | \#[^\n]*                                      # IRIs, comments
    | [?$]\w+                                                                   # variables
    | (?P<reference> \$@(?:key|timestamp|headers\.[\w-]+)
        | \$(?:\.(?:\*|[^\W\d][\w-]*) | \[(?:\*|-?\d+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\])+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMES: Final = ascii_lowercase + digits
_STRING: Final = Term("iri", constant=f"<{XSD_STRING}>")
_HEADERS: Final = "@headers."
_ALLOWED: Final[dict[str, frozenset[str]]] = {
    "subject": frozenset({"iri", "uri", "blank"}),
    "predicate": frozenset({"iri", "uri"}),
    "object": frozenset({"iri", "uri", "blank", "literal"}),
}
_WHAT: Final = {"blank": "a blank node", "literal": "a literal"}
_KNOWN: Final = "IRI, BNODE, STR, CONCAT, ENCODE_FOR_URI, STRDT and STRLANG"
Formulation = Literal["json", "csv"]


def compile_construct(
    text: str, base: str | None, formulation: Formulation, limits: MappingLimits = MAPPING_LIMITS
) -> Program:
    """Return the program of a CONSTRUCT query over a message. `base`: the base IRI of the query. This IRI is also
    prepended to relative IRIs in the data. DataError if the query is invalid or has a feature that is not allowed in a
    mapping. For a syntax error, the message contains the line and the column.
    """
    if len(text) > limits.max_mapping_bytes:
        raise DataError(f"a mapping of {len(text)} characters exceeds max_mapping_bytes ({limits.max_mapping_bytes})")
    replaced, references = _replaced(text, formulation, limits)
    try:
        query = parse(replaced, base)
    except QueryError as error:
        error.text = text
        raise DataError(f"mapping: `construct`: {error}") from error
    if not isinstance(query, ContinuousQuery) or query.form is not Form.CONSTRUCT:
        raise DataError("mapping: `construct` is not a CONSTRUCT query")
    if query.registered or query.windows or query.dataset != Dataset():
        raise DataError("mapping: `construct` reads only the message: it has no REGISTER and no FROM")
    try:
        return _Compiler(_bindings(query.algebra), references, base, formulation, limits).program(query.template)
    except DataError as error:
        raise DataError(f"mapping: `construct`: {error}") from error
    except RecursionError as error:
        raise DataError("mapping: `construct`: its expressions are nested too deeply") from error


def _replaced(text: str, formulation: Formulation, limits: MappingLimits) -> tuple[str, dict[str, Reference]]:
    """Replace each reference in the query by a variable at the same column. Return the new query and the references by
    variable name. DataError if there are more than `max_terms` different references.
    """
    taken = {found[1:] for found in re.findall(r"[?$]\w+", text)}
    names = (name for name in map("".join, chain(*(product(_NAMES, repeat=n) for n in (1, 2, 3)))) if name not in taken)
    known: dict[str, str] = {}
    references: dict[str, Reference] = {}

    def replace(found: re.Match[str]) -> str:
        reference = found["reference"]
        if reference is None:
            return found.group()
        if reference not in known:
            if len(known) == limits.max_terms:
                raise DataError(f"the mapping has more than {limits.max_terms} references (max_terms)")
            name = known[reference] = next(names)
            references[name] = _reference(reference, formulation)
        return f"?{known[reference]}".ljust(len(reference))

    return _TOKEN.sub(replace, text), references


def _reference(text: str, formulation: Formulation) -> Reference:
    if text.startswith("$@"):
        name = text[1:]
        if name.startswith(_HEADERS):
            return Reference("header", name, (), name.removeprefix(_HEADERS))
        return Reference("key" if name == "@key" else "timestamp", name)
    path = parse_path(text)
    if formulation == "json":
        return Reference("path", text, path)
    if len(path) != 1 or not isinstance(path[0], str):
        raise DataError(f"mapping: `construct`: {text} is not a column: write $.NAME or $['NAME']")
    return Reference("column", path[0], (), path[0])


def _bindings(algebra: tree.Node) -> dict[str, tree.Expr]:
    found: dict[str, tree.Expr] = {}
    while isinstance(algebra, tree.Extend):
        found[algebra.variable.name] = algebra.expr
        algebra = algebra.inner
    if not isinstance(algebra, tree.Bgp) or algebra.patterns:
        raise DataError("the WHERE clause of a mapping consists of BIND (… AS ?variable)")
    return found


class _Compiler:
    def __init__(
        self,
        bindings: dict[str, tree.Expr],
        references: dict[str, Reference],
        base: str | None,
        formulation: Formulation,
        limits: MappingLimits,
    ) -> None:
        self._bindings, self._references, self._base = bindings, references, base
        self._source = Source(formulation)
        self._limits = limits
        self._visited = 0
        self._blanks: dict[int, int] = {}

    def program(self, template: Sequence[tree.Triple]) -> Program:
        """Return the program: a rule for each subject of the template."""
        rules: dict[Term, list[Statement]] = {}
        for triple in template:
            terms = {
                position: self._term(getattr(triple, position), position)
                for position in ("subject", "predicate", "object")
            }
            self._check(terms)
            rules.setdefault(terms["subject"], []).append(Statement((terms["predicate"],), (terms["object"],)))
        if not rules:
            raise DataError("the template has no triple")
        return Program(
            tuple(
                Rule(subject.place, self._source, (), subject, tuple(statements))
                for subject, statements in rules.items()
            )
        )

    def _check(self, terms: dict[str, Term]) -> None:
        for position, term in terms.items():
            if term.kind not in _ALLOWED[position]:
                raise DataError(f"{term.place}: a {position} cannot be {_WHAT[term.kind]}")
        seen: set[str] = set()
        for term in terms.values():
            several = {part.text for part in _references(term) if part.source == "path" and not is_single(part.path)}
            if shared := seen & several:
                raise DataError(
                    f"{min(shared)} may have several values, and occurs twice in a triple: use `events` "
                    "to make an event of each value"
                )
            seen |= several

    # ---- terms
    def _term(self, node: tree.Expr | tree.BlankNode, position: str) -> Term:
        place = f"the {position} {_shown(node, self._references)}"
        if isinstance(node, tree.BlankNode):
            return Term("blank", constant=f"_:c{node.label.encode().hex()}", place=place)
        return self._made(node, place)

    def _made(self, expr: tree.Expr, place: str) -> Term:
        self._visit()
        match expr:
            case tree.Variable(name=name) if name in self._references:
                return Term("literal", (self._references[name],), place=place)
            case tree.Variable(name=name) if name in self._bindings:
                return self._made(self._bindings[name], place)
            case tree.Variable(name=name):
                raise DataError(f"?{name} has no value: add BIND (… AS ?{name})")
            case tree.Iri(value=value):
                _check_constant(place, IRI, value)
                return Term("iri", constant=f"<{value}>", place=place)
            case tree.Literal(lexical=lexical, datatype=datatype, lang=lang):
                _check_constant(place, LITERAL, lexical, datatype, lang)
                return Term("literal", constant=_literal(expr), place=place)
            case tree.Call(name="iri" | "uri", args=(text,)):
                return self._iri(text, place)
            case tree.Call(name="bnode", args=()):
                return Term("blank", constant=f"_:n{self._blanks.setdefault(id(expr), len(self._blanks))}", place=place)
            case tree.Call(name="bnode", args=(text,)):
                parts, _ = self._parts(text, place)
                return Term("blank", parts, place=place)
            case tree.Call(name="strdt", args=(text, tree.Iri(value=value))):
                parts, _ = self._parts(text, place)
                _check_constant(place, IRI, value)
                return Term("literal", parts, datatype=Term("iri", constant=f"<{value}>"), place=place)
            case tree.Call(name="strlang", args=(text, tree.Literal(lexical=tag))):
                parts, _ = self._parts(text, place)
                _check_constant(place, LITERAL, "", RDF_LANG_STRING, tag)
                return Term("literal", parts, language=Term("literal", constant=f'"{tag}"'), place=place)
            case tree.Call(name="str" | "concat" | "encode_for_uri"):
                parts, is_encoded = self._parts(expr, place)
                if is_encoded:
                    raise DataError(f"{place}: ENCODE_FOR_URI is for IRI(CONCAT(…))")
                return Term("literal", parts, datatype=_STRING, place=place)
            case tree.Call(name=name) if name.startswith("cast:"):
                kind = name.removeprefix("cast:")
                raise DataError(f"{place}: casts are not supported; write STRDT(STR(…), xsd:{kind})")
        raise DataError(f"{place}: the functions of a mapping are {_KNOWN}")

    def _iri(self, expr: tree.Expr, place: str) -> Term:
        parts, is_encoded = self._parts(expr, place)
        kind: TermKind = "uri" if is_encoded else "iri"
        sample = "".join(part if isinstance(part, str) else "x" for part in parts)
        _check_constant(place, IRI, sample if ABSOLUTE.match(sample) else f"urn:x/{sample}")
        return Term(kind, parts, is_encoded, base=self._base, place=place)

    def _parts(self, expr: tree.Expr, place: str) -> tuple[tuple[str | Reference, ...], bool]:
        """Return the parts of a text expression, and whether the values of its references are percent-encoded."""
        found = list(self._pieces(expr, place, encoded=False))
        encoded = {is_encoded for part, is_encoded in found if not isinstance(part, str)}
        if len(encoded) > 1:
            raise DataError(f"{place}: ENCODE_FOR_URI is needed for all references of a text, or for none")
        return tuple(part for part, _ in found), True in encoded

    def _pieces(self, expr: tree.Expr, place: str, *, encoded: bool) -> Iterator[tuple[str | Reference, bool]]:
        self._visit()
        match expr:
            case tree.Literal(lexical=text, lang=""):
                if encoded:
                    raise DataError(f"{place}: ENCODE_FOR_URI is for references")
                yield text, False
            case tree.Variable(name=name) if name in self._references:
                yield self._references[name], encoded
            case tree.Variable(name=name) if name in self._bindings:
                yield from self._pieces(self._bindings[name], place, encoded=encoded)
            case tree.Call(name="str", args=(text,)):
                yield from self._pieces(text, place, encoded=encoded)
            case tree.Call(name="encode_for_uri", args=(text,)) if not encoded:
                yield from self._pieces(text, place, encoded=True)
            case tree.Call(name="concat", args=args):
                for each in args:
                    yield from self._pieces(each, place, encoded=encoded)
            case _:
                raise DataError(f"{place}: a text consists of strings, references, STR, CONCAT and ENCODE_FOR_URI")

    def _visit(self) -> None:
        self._visited += 1
        if self._visited > self._limits.max_terms:
            raise DataError(f"the mapping has more than {self._limits.max_terms} terms (max_terms)")


def _check_constant(place: str, kind: int, lexical: str, datatype: str = "", lang: str = "") -> None:
    try:
        check_term(kind, lexical, datatype, lang)
    except DataError as error:
        raise DataError(f"{place}: {error}") from error


def _references(term: Term) -> Iterator[Reference]:
    yield from (part for part in term.parts if not isinstance(part, str))


def _literal(literal: tree.Literal) -> str:
    text = f'"{escaped(literal.lexical)}"'
    if literal.lang:
        return f"{text}@{literal.lang}"
    return text if literal.datatype == XSD_STRING else f"{text}^^<{literal.datatype}>"


def _shown(node: object, references: dict[str, Reference]) -> str:
    match node:
        case tree.Variable(name=name):
            return references[name].text if name in references else f"?{name}"
        case tree.Iri(value=value):
            return f"<{value}>"
        case tree.BlankNode(label=label):
            return f"_:{label}"
    return "literal"
