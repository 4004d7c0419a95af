"""A catalogue with made-up counts, and short ways to write algebra."""

from __future__ import annotations

from penstock.query.algebra.tree import Bgp, Iri, Literal, Triple, Variable
from penstock.query.catalogue import ANY_PREDICATE
from penstock.query.planning.entailment.schema import Schema

EX = "http://ex.org/"


def term(text):
    """?x is a variable, "x" a literal, anything else an IRI of ex.org."""
    if text.startswith("?"):
        return Variable(text[1:])
    if text.startswith('"'):
        return Literal(text[1:-1], "http://www.w3.org/2001/XMLSchema#string")
    return Iri(EX + text)


def triple(text):
    return Triple(*map(term, text.split()))


def bgp(*texts):
    return Bgp(tuple(map(triple, texts)))


class MadeUpCatalogue:
    """Counts by (source, predicate); everything else exists."""

    def __init__(self, stats=None, degrees=None):
        self.ids = {}
        self.stats = stats or {}
        self.degrees = degrees or {}
        self.placement = None

    def is_stream(self, iri):
        return "stream" in iri

    def batch_ms(self, stream):
        return 100

    def has_graph(self, iri):
        return "unknown" not in iri

    def timing(self, stream):
        return "gps" in stream

    def retention_ms(self, stream):
        return 0

    def graph_history(self, stream):
        return False

    def term_id(self, term):
        return self.ids.setdefault(term, len(self.ids) + 1)

    def _name(self, number):
        return next(term.value.removeprefix(EX) for term, known in self.ids.items() if known == number)

    def schema(self):
        return Schema.empty()

    def label_stats(self, source, graph, predicate):
        if predicate == ANY_PREDICATE:
            return 10**6, 10**5, 10**5
        return self.stats.get((source, self._name(predicate)), (0, 0, 0))

    def degree(self, source, vertex, graph, predicate, direction):
        return self.degrees.get((self._name(vertex), self._name(predicate), direction), 1)


def pipeline(node):
    """Operators from the seed up, along the main input."""
    found = []
    while node is not None:
        found.append(node)
        node = node.get("in") or node.get("left")
    return found[::-1]


def operators(node):
    return [step["op"] for step in pipeline(node)]
