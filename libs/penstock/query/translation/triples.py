"""Translation of the triples of patterns, templates and data. The translation expands predicate lists, `[ … ]` and
collections (SPARQL 1.1 §4.2).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from penstock.query.algebra.tree import BlankNode, Iri, Literal, PathTriple, Term, Triple, Variable
from penstock.query.syntax.ast_nodes import (
    BlankProperties,
    Collection,
    LiteralSyntax,
    NodeSyntax,
    PathSyntax,
    VerbObjects,
    VerbSyntax,
    position,
)
from penstock.query.syntax.plain_triples import DATATYPE, LANG, NODE, NUMBER, STRING
from penstock.query.text_faults import Fault
from penstock.query.translation.names import IRI_TOKENS, LANG_STRING, RDF, XSD, literal
from penstock.query.translation.paths import path, path_triples

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Sequence

    from penstock.query.syntax.ast_nodes import TriplesBlock
    from penstock.query.syntax.plain_triples import PlainTriple
    from penstock.query.translation.context import Context

_SPEND_EVERY = 64  # number of plain triples between two checks of the budget


class TripleReader:
    """Translates the triples of a CONSTRUCT template. Blank nodes stay blank nodes, and predicates cannot be paths."""

    where = "a CONSTRUCT template"

    def __init__(self, context: Context) -> None:
        self.context = context
        self.triples: list[Triple | PathTriple] = []

    def read(self, block: TriplesBlock) -> None:
        """Translate the triples of a block, and append the results to `triples`. Fault if a triple is invalid."""
        for same in block.subjects:
            self.context.budget.spend(same.at)
            subject = self._node(same.subject)
            self._properties(subject, same.properties)

    def plain(self) -> tuple[Triple, ...]:
        """Return the triples. The blocks must be of a kind that cannot contain paths."""
        return tuple(triple for triple in self.triples if isinstance(triple, Triple))

    def _properties(self, subject: Term, properties: tuple[VerbObjects, ...]) -> None:
        for verb_objects in properties:
            for target in verb_objects.objects:
                self.context.budget.spend()
                self._triple(subject, verb_objects.verb, self._node(target), position(target))

    def _triple(self, subject: Term, verb: VerbSyntax, target: Term, at: int) -> None:
        if isinstance(verb, PathSyntax):
            raise Fault(f"a property path cannot stand in {self.where}", verb.at)
        predicate = self._variable(verb) if verb.type == "VAR" else self.context.names.iri(verb)
        self.triples.append(Triple(subject, predicate, target, subject.at if subject.at >= 0 else at))

    def _node(self, syntax: NodeSyntax) -> Term:
        if isinstance(syntax, Token):
            return self._leaf(syntax)
        if isinstance(syntax, LiteralSyntax):
            return literal(syntax, self.context.names)
        self.context.enter(1, syntax.at)
        term = self._collection(syntax) if isinstance(syntax, Collection) else self._blank_properties(syntax)
        self.context.depth -= 1
        return term

    def _leaf(self, token: Token) -> Term:
        if token.type == "VAR":
            return self._variable(token)
        if token.type in IRI_TOKENS:
            return self.context.names.iri(token)
        if token.type == "BLANK_NODE_LABEL":
            return self._labelled(token[2:], position(token))
        return literal(token, self.context.names)

    def _blank_properties(self, syntax: BlankProperties) -> Term:
        node = self._fresh(syntax.at)
        self._properties(node, syntax.properties)
        return node

    def _collection(self, syntax: Collection) -> Term:
        if not syntax.items:
            return Iri(RDF + "nil", syntax.at)
        head = node = self._fresh(syntax.at)
        for index, item in enumerate(syntax.items):
            at = position(item)
            self.context.budget.spend(at)
            self.triples.append(Triple(node, Iri(RDF + "first", at), self._node(item), at))
            last = index + 1 == len(syntax.items)
            rest = Iri(RDF + "nil", at) if last else self._fresh(at)
            self.triples.append(Triple(node, Iri(RDF + "rest", at), rest, at))
            node = rest
        return head

    def _variable(self, token: Token) -> Term:
        return self.context.variable(token)

    def _labelled(self, label: str, at: int) -> Term:
        return BlankNode(label, at)

    def _fresh(self, at: int) -> Term:
        return BlankNode(self.context.fresh_label("b"), at)


class InsertTemplateReader(TripleReader):
    """Translates the triples of the INSERT template of an update."""

    where = "an INSERT template"


class _Ground(TripleReader):
    """Translates triples and refuses blank nodes. A blank node in these triples would match no stored blank node."""

    def _labelled(self, label: str, at: int) -> Term:
        raise Fault(f"a blank node cannot stand in {self.where}", at, f"_:{label}")

    def _fresh(self, at: int) -> Term:
        raise Fault(f"a blank node cannot stand in {self.where}", at)


class DeleteTemplateReader(_Ground):
    """Translates the triples of a DELETE template or of DELETE WHERE."""

    where = "a DELETE template"


class DataReader(TripleReader):
    """Translates the triples of INSERT DATA, which cannot contain variables."""

    where = "INSERT DATA"

    def plain_triples(self, triples: Sequence[PlainTriple]) -> Iterator[Triple]:
        """Yield the translation of triples that `PlainReader` has read."""
        for index, (subject, subject_at, verb, verb_at, match) in enumerate(triples):
            if index % _SPEND_EVERY == 0:
                self.context.budget.spend(subject_at)
            predicate = self.context.names.written(verb, verb_at)
            yield Triple(self._plain_node(subject, subject_at), predicate, self._plain_object(match), subject_at)

    def _plain_node(self, text: str, at: int) -> Iri | Term:
        return self._labelled(text[2:], at) if text.startswith("_:") else self.context.names.written(text, at)

    def _plain_object(self, match: re.Match[str]) -> Term:
        node, number, string = match.group(NODE, NUMBER, STRING)
        if node is not None:
            return self._plain_node(node, match.start(NODE))
        if number is not None:
            return Literal(number, XSD + _numeric_type(number), "", match.start(NUMBER))
        at, text = match.start(STRING), string[1:-1]
        if match[LANG] is not None:
            return Literal(text, LANG_STRING, match[LANG].lower(), at)
        if match[DATATYPE] is not None:
            return Literal(text, self.context.names.written(match[DATATYPE], match.start(DATATYPE)).value, "", at)
        return Literal(text, XSD + "string", "", at)

    def _variable(self, token: Token) -> Term:
        raise Fault(f"a variable cannot stand in {self.where}", position(token), str(token))

    def _labelled(self, label: str, at: int) -> Term:
        """Return a blank node. Fault if its label occurs in another INSERT DATA of the text (SPARQL 1.1 §19.6)."""
        if self.context.labels.setdefault(label, self.context.bgps) != self.context.bgps:
            raise Fault(f"blank node label '_:{label}' is used in two INSERT DATA of one text", at, f"_:{label}")
        return BlankNode(label, at)

    def _triple(self, subject: Term, verb: VerbSyntax, target: Term, at: int) -> None:
        if isinstance(subject, Literal):
            raise Fault("a literal cannot be the subject of a triple", subject.at)
        super()._triple(subject, verb, target, at)


class DeleteDataReader(_Ground, DataReader):
    """Translates the triples of DELETE DATA, which cannot contain variables or blank nodes."""

    where = "DELETE DATA"


class PatternReader(TripleReader):
    """Translates the triples of one basic graph pattern. Blank nodes become hidden variables, and predicates can be
    paths.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        context.bgps += 1
        self._bgp = context.bgps

    def _triple(self, subject: Term, verb: VerbSyntax, target: Term, at: int) -> None:
        if isinstance(verb, PathSyntax):
            way = path(self.context, verb)
            start = subject.at if subject.at >= 0 else at
            self.triples.extend(path_triples(self.context, subject, way, target, start))
        else:
            super()._triple(subject, verb, target, at)

    def _leaf(self, token: Token) -> Term:
        return self.context.constant_or_variable(token) if token.type == "VAR" else super()._leaf(token)

    def _labelled(self, label: str, at: int) -> Term:
        """Return the variable of a blank node. Fault if its label occurs in another basic graph pattern (SPARQL 1.1
        §5.1.1).
        """
        if self.context.labels.setdefault(label, self._bgp) != self._bgp:
            message = f"blank node label '_:{label}' is used in two basic graph patterns; use a variable"
            raise Fault(message, at, f"_:{label}")
        return Variable(f"_:{label}", at)

    def _fresh(self, at: int) -> Term:
        return self.context.fresh("b", at)


def _numeric_type(text: str) -> str:
    if "e" in text or "E" in text:
        return "double"
    return "decimal" if "." in text else "integer"
