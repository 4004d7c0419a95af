"""Compiles RML (kg-construct RML-Core; JSON and CSV logical sources of RML-IO) to a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import DataError
from penstock.mapping.json_path import parse_path
from penstock.mapping.mapping_graph import RML, MappingGraph, shown
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits
from penstock.mapping.program import Join, Program, Rule, Source, Statement
from penstock.mapping.term_maps import TermMaps
from penstock.rdf.terms import BLANK, IRI, LITERAL

if TYPE_CHECKING:
    from penstock.core._native import TermTuple
    from penstock.mapping.program import Term

_RDF_TYPE: Final = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_FORMULATIONS: Final = {f"{RML}JSONPath": "json", f"{RML}CSV": "csv"}
_COMPRESSIONS: Final = {f"{RML}none": "", f"{RML}gzip": "gzip"}
_ENCODINGS: Final = {f"{RML}UTF-8": "utf-8", f"{RML}UTF-16": "utf-16"}


def compile_rml(text: str, base: str | None = None, limits: MappingLimits = MAPPING_LIMITS) -> Program:
    """Return the program of an RML mapping in Turtle. `base`: the IRI that is prepended to relative IRIs in the data.
    DataError if the mapping is invalid or has an unsupported feature. The error names the triples map and the term map,
    and the line if it is known.
    """
    if len(text) > limits.max_mapping_bytes:
        raise DataError(f"a mapping of {len(text)} characters exceeds max_mapping_bytes ({limits.max_mapping_bytes})")
    return _Compiler(MappingGraph(text, None), base, limits).program()


@dataclass(slots=True)
class _TriplesMap:
    """A triples map whose subject and source are compiled."""

    node: TermTuple
    name: str
    source: Source
    iterator: str
    subject: Term
    graphs: tuple[Term, ...]


class _Compiler:
    def __init__(self, graph: MappingGraph, base: str | None, limits: MappingLimits) -> None:
        self._graph = graph
        self._base = base
        self._limits = limits
        self._terms = TermMaps(graph, limits)

    def program(self) -> Program:
        nodes = [
            node
            for node, properties in self._graph.properties.items()
            if RML + "logicalSource" in properties or RML + "logicalTable" in properties
        ]
        typed = (RML + "TriplesMap", (RML + "subjectMap"), (RML + "subject"))
        for node, properties in self._graph.properties.items():
            named = any(value[1] == typed[0] for value in properties.get(_RDF_TYPE[1:-1], ()))
            if node not in nodes and (named or typed[1] in properties or typed[2] in properties):
                raise self._graph.fault(shown(node), "a triples map needs rml:logicalSource", node)
        if not nodes:
            raise DataError("mapping: it has no triples map (a resource with rml:logicalSource and rml:subjectMap)")
        self._maps = [self._triples_map(node) for node in nodes]
        self._number = {each.node: i for i, each in enumerate(self._maps)}
        return Program(tuple(self._rule(each) for each in self._maps))

    # ---- triples maps
    def _triples_map(self, node: TermTuple) -> _TriplesMap:
        graph, name = self._graph, shown(node)
        base = graph.text(node, "baseIRI", name) or self._base
        source, iterator = self._source(node, name)
        place = f"{name}, subject map"
        maps = graph.all(node, "subjectMap")
        constants = graph.all(node, "subject")
        if len(maps) + len(constants) != 1:
            raise graph.fault(name, f"{len(maps) + len(constants)} subject maps; a triples map needs exactly one", node)
        if constants:
            return _TriplesMap(node, name, source, iterator, self._terms.constant(constants[0], "iri", place), ())
        subject = self._terms.term(maps[0], "subject", source, base, place)
        return _TriplesMap(node, name, source, iterator, subject, self._graphs(maps[0], source, base, place))

    def _source(self, node: TermTuple, name: str) -> tuple[Source, str]:
        graph = self._graph
        place = f"{name}, logical source"
        logical = graph.one(node, "logicalSource", name)
        if logical is None:
            raise graph.fault(name, "rml:logicalTable is for databases; JSON and CSV need rml:logicalSource", node)
        formulation = graph.text(logical, "referenceFormulation", place)
        kind = _FORMULATIONS.get(formulation or f"{RML}JSONPath")
        if kind is None:
            raise graph.fault(
                place, f"reference formulation <{formulation}> is not supported; rml:JSONPath and rml:CSV are"
            )
        iterator = graph.text(logical, "iterator", place) or "$"
        described = graph.one(logical, "source", place)
        if described is None or described[0] == LITERAL:
            return self._of_kind(kind, "" if described is None else described[1], iterator)
        nulls = tuple(value[1] for value in graph.all(described, "null"))
        encoding = graph.text(described, "encoding", place)
        compression = graph.text(described, "compression", place)
        location = graph.text(described, "path", place) or (described[1] if described[0] == IRI else "")
        if encoding is not None and encoding not in _ENCODINGS:
            raise graph.fault(place, f"the encoding <{encoding}> is not supported; rml:UTF-8 and rml:UTF-16 are")
        if compression is not None and compression not in _COMPRESSIONS:
            raise graph.fault(place, f"the compression <{compression}> is not supported; rml:gzip is")
        source, iterator = self._of_kind(kind, location, iterator)
        coding = _ENCODINGS[encoding or f"{RML}UTF-8"]
        return Source(source.formulation, location, nulls, coding, _COMPRESSIONS[compression or f"{RML}none"]), iterator

    @staticmethod
    def _of_kind(kind: str, location: str, iterator: str) -> tuple[Source, str]:
        return (Source("csv", location), "$") if kind == "csv" else (Source("json", location), iterator)

    def _rule(self, each: _TriplesMap) -> Rule:
        graph = self._graph
        try:
            iterator = parse_path(each.iterator)
        except DataError as error:
            raise graph.fault(f"{each.name}, logical source", f"rml:iterator: {error}", each.iterator) from error
        base = graph.text(each.node, "baseIRI", each.name) or self._base
        statements = []
        subject_map = graph.one(each.node, "subjectMap", each.name)
        for value in [] if subject_map is None else graph.all(subject_map, "class"):
            made = self._terms.constant(value, "iri", f"{each.name}, rml:class")
            statements.append(Statement((self._terms.predicate_constant(_RDF_TYPE),), (made,), each.graphs))
        for number, node in enumerate(graph.all(each.node, "predicateObjectMap"), 1):
            statements.append(self._statement(node, each, base, f"{each.name}, predicate-object map {number}"))
        return Rule(each.name, each.source, iterator, each.subject, tuple(statements))

    def _statement(self, node: TermTuple, each: _TriplesMap, base: str | None, place: str) -> Statement:
        graph, terms = self._graph, self._terms
        predicates = [terms.constant(value, "iri", f"{place}, predicate") for value in graph.all(node, "predicate")]
        predicates += [
            terms.term(value, "predicate", each.source, base, f"{place}, predicate map")
            for value in graph.all(node, "predicateMap")
        ]
        if not predicates:
            raise graph.fault(place, "it needs rml:predicate or rml:predicateMap")
        if len(predicates) == 1 and predicates[0].constant is not None:
            place = f"{place} ({predicates[0].constant})"
        objects: list[Term | Join] = [terms.constant(v, "any", f"{place}, object") for v in graph.all(node, "object")]
        objects += [self._object(value, each, base, f"{place}, object map") for value in graph.all(node, "objectMap")]
        if not objects:
            raise graph.fault(place, "it needs rml:object or rml:objectMap")
        graphs = (*each.graphs, *self._graphs(node, each.source, base, place))
        return Statement(tuple(predicates), tuple(objects), tuple(dict.fromkeys(graphs)))

    def _object(self, node: TermTuple, each: _TriplesMap, base: str | None, place: str) -> Term | Join:
        graph = self._graph
        parent = graph.one(node, "parentTriplesMap", place)
        if parent is None:
            return self._terms.term(node, "object", each.source, base, place)
        number = self._number.get(parent)
        if number is None:
            raise graph.fault(
                place, f"rml:parentTriplesMap {shown(parent)} is not a triples map of the mapping", parent
            )
        other = self._maps[number]
        conditions = graph.all(node, "joinCondition")
        if other.subject.kind == "blank" and not other.subject.parts and other.subject.constant is None:
            raise graph.fault(
                place, f"the subject of {other.name} is a new blank node for each record: no other map can name it"
            )
        if not conditions:
            if (other.source, other.iterator) != (each.source, each.iterator):
                raise graph.fault(
                    place, f"{other.name} has another logical source: rml:parentTriplesMap needs rml:joinCondition"
                )
            return other.subject
        pairs = []
        for condition in conditions:
            child = self._condition(condition, "child", each.source, place)
            pairs.append((child, self._condition(condition, "parent", other.source, place)))
        return Join(number, tuple(pairs))

    def _condition(self, node: TermTuple, side: str, source: Source, place: str) -> Term:
        graph = self._graph
        place = f"{place}, join condition"
        text = graph.text(node, side, place)
        described = graph.one(node, f"{side}Map", place)
        if text is not None and described is None:
            return self._terms.reference_text(text, source, f"{place}, {side}")
        if described is None or text is not None:
            raise graph.fault(place, f"it needs one of rml:{side} and rml:{side}Map")
        return self._terms.term(described, "text", source, None, f"{place}, {side} map")

    def _graphs(self, node: TermTuple, source: Source, base: str | None, place: str) -> tuple[Term, ...]:
        place = f"{place}, graph"
        found = [self._graph_constant(value, place) for value in self._graph.all(node, "graph")]
        for value in self._graph.all(node, "graphMap"):
            constant = self._graph.one(value, "constant", place)
            found.append(
                self._terms.term(value, "graph", source, base, f"{place} map")
                if constant is None
                else self._graph_constant(constant, place)
            )
        return tuple(found)

    def _graph_constant(self, value: TermTuple, place: str) -> Term:
        if value[1] == f"{RML}defaultGraph":
            return self._terms.predicate_constant("")
        if value[0] == BLANK:
            raise self._graph.fault(place, "a graph must be an IRI")
        return self._terms.constant(value, "iri", place)
