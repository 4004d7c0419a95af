"""Translation of terms: resolves names by BASE and PREFIX, and determines the datatypes of literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from penstock.query.algebra.tree import Iri, Literal
from penstock.query.syntax.ast_nodes import LiteralSyntax, position
from penstock.query.syntax.lexis import local_name, string_value
from penstock.query.text_faults import Fault
from penstock.query.translation.iri import resolve

if TYPE_CHECKING:
    from penstock.query.budget import Budget
    from penstock.query.syntax.ast_nodes import Prologue

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
LANG_STRING = RDF + "langString"

_COPIES = 4  # estimated number of copies of an IRI in the query, the plan and the dictionary

IRI_TOKENS = frozenset({"IRIREF", "PNAME_LN", "PNAME_NS", "NAME", "A"})

_WELL_KNOWN = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "sosa": "http://www.w3.org/ns/sosa/",
}
_DATATYPES = {
    "BOOLEAN": XSD + "boolean",
    **dict.fromkeys(("INTEGER", "INTEGER_POSITIVE", "INTEGER_NEGATIVE"), XSD + "integer"),
    **dict.fromkeys(("DECIMAL", "DECIMAL_POSITIVE", "DECIMAL_NEGATIVE"), XSD + "decimal"),
    **dict.fromkeys(("DOUBLE", "DOUBLE_POSITIVE", "DOUBLE_NEGATIVE"), XSD + "double"),
}


class Names:
    """The base and prefixes that are in effect at a position of the text."""

    def __init__(self, base: str | None, budget: Budget) -> None:
        self.base = base
        self._budget = budget
        self._prefixes: dict[str, str] = {}
        self._resolved: dict[str, str] = {}

    def declare(self, prologue: Prologue) -> None:
        """Apply BASE and PREFIX declarations in order. Later declarations override earlier declarations."""
        for prefix, reference in prologue.declarations:
            iri = self._reference(reference[1:-1])
            self._budget.charge(len(iri), position(reference))
            if prefix is None:
                self.base = iri
            else:
                self._prefixes[prefix[:-1]] = iri
        self._resolved.clear()

    def iri(self, token: Token) -> Iri:
        """Return the IRI for a token: an `iri` of the grammar, a bare name, or `a`. Fault if a prefix is not declared,
        or if a bare name has no base.
        """
        key = str(token)
        value = self._resolved.get(key)
        if value is None:
            value = self._resolved[key] = self._value(token)
            # charge here, because a short name can stand for a long IRI
            self._budget.charge(_COPIES * len(value), position(token))
        return Iri(value, position(token))

    def written(self, text: str, at: int) -> Iri:
        """Return the IRI for `text` at offset `at`. The text is an IRI in angle brackets, a prefixed name with a local
        part, or `a`.
        """
        value = self._resolved.get(text)
        if value is None:
            kind = "IRIREF" if text[0] == "<" else "PNAME_LN" if ":" in text else "A"
            return self.iri(Token(kind, text, at))
        return Iri(value, at)

    def _value(self, token: Token) -> str:
        text = str(token)
        if token.type == "IRIREF":
            return self._reference(text[1:-1])
        if token.type == "A":
            return RDF + "type"
        if token.type == "NAME":
            return self._bare(token)
        prefix, _, local = text.partition(":")
        namespace = self._prefixes.get(prefix)
        if namespace is None:
            raise Fault(f"prefix '{prefix}:' is not declared{_declaration_of(prefix)}", position(token), text)
        return namespace + local_name(local)

    def _reference(self, reference: str) -> str:
        return reference if self.base is None else resolve(self.base, reference)

    def _bare(self, token: Token) -> str:
        if self.base is None:
            message = f"the bare name '{token}' can only be read against a base: give base=, or write an IRI"
            raise Fault(message, position(token), str(token))
        return resolve(self.base, str(token))


def literal(syntax: Token | LiteralSyntax, names: Names) -> Literal:
    """Return the literal that a token, or a string with a datatype or language tag, denotes."""
    if isinstance(syntax, LiteralSyntax):
        text = string_value(syntax.string)
        if syntax.lang is not None:
            return Literal(text, LANG_STRING, syntax.lang[1:].lower(), syntax.at)  # RDF 1.1 Concepts §3.3
        assert syntax.datatype is not None
        return Literal(text, names.iri(syntax.datatype).value, "", syntax.at)
    datatype = _DATATYPES.get(syntax.type)
    if datatype is None:
        return Literal(string_value(syntax), XSD + "string", "", position(syntax))
    lexical = syntax.lower() if syntax.type == "BOOLEAN" else str(syntax)
    return Literal(lexical, datatype, "", position(syntax))


def constant(syntax: Token | LiteralSyntax, names: Names) -> Iri | Literal:
    """Return the IRI or literal that the syntax denotes."""
    if not isinstance(syntax, LiteralSyntax) and syntax.type in IRI_TOKENS:
        return names.iri(syntax)
    return literal(syntax, names)


def _declaration_of(prefix: str) -> str:
    """Return a hint that shows the declaration of a prefix."""
    return f": add PREFIX {prefix}: <{_WELL_KNOWN.get(prefix, '…')}> at the beginning"
