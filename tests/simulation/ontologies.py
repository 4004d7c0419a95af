"""Entailment in a simulated cluster (ADR 93): most queries of a case have WITH ENTAILMENT RDFS, and its stored schema
changes all the time, by updates and by the timeless tuples of streams.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

from penstock.errors import QueryError
from penstock.query.parser import parse
from property.bodies import LINKS, NODES, VALUE
from property.script import Declare, Load, Push, Register, Update
from support import patterns as P
from support.entailed_graphs import DOMAIN, INVERSE, RANGE, SAME, SUBCLASS, SUBPROPERTY, TYPE
from support.header import STORED

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from property.script import Operation

_ENTAILED = 0.8  # of the texts
_CHANGES = 0.25  # of operations, behind which an update changes the schema
_STREAMED = 0.1  # of events that have a triple of the schema


def with_ontology(case: Any, rng: random.Random) -> Any:
    """Return a case with entailment in most of its queries, and with changes of the schema in between. Names of nodes are
    also names of classes, and the links of the case are properties. Further queries return all entailed triples of a
    window.
    """
    first = next(i for i, operation in enumerate(case.operations) if not isinstance(operation, Declare | Load))
    made = [_register(operation.iri, rng) for operation in case.operations[:first] if isinstance(operation, Declare)]
    return replace(case, operations=tuple(_changed((*case.operations[:first], *made, *case.operations[first:]), rng)))


def _register(iri: str, rng: random.Random) -> Register:
    """Return the registration of a query for all entailed triples of a stream's window, or of the window and the stored
    graph.
    """
    name = f"entailed{iri.rpartition('/')[2]}"
    step = rng.choice([200, 500])
    data = f"FROM STREAM <{iri}> [RANGE {step * rng.choice([1, 3])}ms STEP {step}ms]"
    if rng.random() < 0.3:
        data += f" FROM <{STORED}>"
    text = f"REGISTER {rng.choice(['QUERY', 'ISTREAM'])} {name} AS SELECT ?s ?p ?o {data} WHERE {{ ?s ?p ?o }}"
    return Register(name, text.replace(" WHERE", " WITH ENTAILMENT RDFS WHERE"), P.Select((), P.Group(())))


def entailed(text: str) -> str:
    """Return the text of a query with entailment, or the same text if its form is not allowed with entailment. The texts
    of a group differ in constants of the pattern: all of them, or none, have entailment.
    """
    header, where, pattern = text.partition(" WHERE {")
    if "ENTAILMENT" in header:
        return text
    made = f"{header} WITH ENTAILMENT RDFS{where}{pattern}"
    name_at = header.find(" AS ")
    if not where or crc32(header[name_at:].encode()) % 100 >= 100 * _ENTAILED:
        return text
    try:
        parse(made, None, accepted=True)
    except QueryError:
        return text
    return made


def _changed(operations: tuple[Operation, ...], rng: random.Random) -> Iterator[Operation]:
    known: list[str] = []
    for operation in operations:
        match operation:
            case Register(text=text):
                yield replace(operation, text=entailed(text))
            case Push(data=data) if rng.random() < _STREAMED:
                known.append(_schema_triple(rng))
                yield replace(operation, data=f"{data}\n{known[-1]} .")
            case _:
                yield operation
        if not isinstance(operation, Declare | Load) and rng.random() < _CHANGES:
            yield from _change(known, rng)


def _change(known: list[str], rng: random.Random) -> Iterator[Operation]:
    if known and rng.random() < 0.4:
        gone = rng.sample(known, min(len(known), rng.choice([1, 1, 3])))
        known[:] = [triple for triple in known if triple not in gone]
        yield Update(f"DELETE DATA {{ {' . '.join(gone)} }}")
    else:
        made = [_schema_triple(rng) for _ in range(rng.choice([1, 1, 2]))]
        known += made
        yield Update(f"INSERT DATA {{ {' . '.join(made)} }}")


def _schema_triple(rng: random.Random) -> str:
    kind = rng.choice([TYPE, SUBCLASS, SUBPROPERTY, SUBPROPERTY, SUBPROPERTY, INVERSE, DOMAIN, RANGE, SAME])
    nodes, links = [str(node) for node in NODES], [str(link) for link in (*LINKS, VALUE)]
    match kind:
        case _ if kind in (SUBPROPERTY, INVERSE):
            ends = rng.choice(links), rng.choice(links)
        case _ if kind in (DOMAIN, RANGE):
            ends = rng.choice(links), rng.choice(nodes)
        case _:
            ends = rng.choice(nodes), rng.choice(nodes)
    return f"{ends[0]} {kind} {ends[1]}"
