"""The queries by the embedded engine, from JSON by an RML mapping or from columns of term ids."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import numpy as np

import penstock
from benchmarks.macro.nexmark.events import CATEGORY, EVERY, RATE_OF_EXCHANGE, SLIDE_MS, STREAMS, TOP, WINDOW_MS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from benchmarks.macro.nexmark.events import Answer, Event, Events

_IRI = "http://nexmark.example/"
_RANGE = f"RANGE {WINDOW_MS}ms"
_KINDS = {"bid": "bid", "auction": "auction", "bidder": "person", "seller": "person", "person": "person"}
"""Members that name a resource, with its kind. Other members are literals."""
_SUBJECTS = {"bids": "bid", "auctions": "auction", "persons": "person"}


def _text(query: str, auctions: int) -> str:
    body = {
        "q1": f"?b (?p * {RATE_OF_EXCHANGE} AS ?price) FROM STREAM :bids [RANGE 1s STEP 1s] WHERE {{ ?b :price ?p }}",
        "q2": "?a ?p FROM STREAM :bids [RANGE 1s STEP 1s] WHERE { VALUES ?a { "
        + " ".join(f"<{_IRI}auction/{number}>" for number in range(0, auctions, EVERY))
        + " } ?b :auction ?a ; :price ?p }",
        "q3": "?a ?name FROM STREAM :auctions [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored>"
        f" WHERE {{ ?a :category {CATEGORY} ; :seller ?s . ?s :name ?name }}",
        "q5": f"?a (COUNT(?b) AS ?n) FROM STREAM :bids [{_RANGE} STEP {SLIDE_MS}ms] WHERE {{ ?b :auction ?a }}"
        f" GROUP BY ?a ORDER BY DESC(?n) LIMIT {TOP}",
        "q7": f"(MAX(?p) AS ?price) FROM STREAM :bids [{_RANGE} TUMBLING] WHERE {{ ?b :price ?p }}",
        "q8": f"DISTINCT ?s FROM STREAM :auctions [{_RANGE} TUMBLING] FROM STREAM :persons [{_RANGE} TUMBLING]"
        " WHERE { ?a :seller ?s . ?s :name ?name }",
    }[query]
    return f"PREFIX : <{_IRI}> REGISTER QUERY {query} AS SELECT {body}"


def _mapping(stream: str, event: Event) -> str:
    """Return the RML mapping of a stream: a triple for each member but the subject's number and the time."""
    subject = _SUBJECTS[stream]
    members = [
        f'[ rml:predicate :{name} ; rml:objectMap [ rml:template "{_IRI}{_KINDS[name]}/{{$.{name}}}" ] ]'
        if name in _KINDS
        else f'[ rml:predicate :{name} ; rml:objectMap [ rml:reference "$.{name}" ] ]'
        for name in event
        if name not in (subject, "ts")
    ]
    return (
        f'@prefix rml: <http://w3id.org/rml/> . @prefix : <{_IRI}> . <#m> rml:logicalSource [ rml:iterator "$" ] ; '
        f'rml:subjectMap [ rml:template "{_IRI}{subject}/{{$.{subject}}}" ] ; '
        f"rml:predicateObjectMap {', '.join(members)} ."
    )


def answer(query: str, events: Events, *, columns: bool) -> tuple[float, Answer]:
    """Return the processor time in seconds, and the answer in the form of `Events.answer`. `columns`: push columns of
    ids in place of JSON.
    """
    with penstock.Engine() as engine:
        for stream in STREAMS[query]:
            mapping = None if columns else {"rml": _mapping(stream, events.streams[stream][0])}
            engine.declare_stream(_IRI + stream, batch_ms=1_000, timing="all", mapping=mapping)
        if query == "q3":
            lines = [f'<{_IRI}person/{p["person"]}> <{_IRI}name> "{p["name"]}" .' for p in events.streams["persons"]]
            engine.load("\n".join(lines).encode(), format="nt")
        standing = engine.register(_text(query, len(events.streams["auctions"])))
        pushes = [_pushes(engine, stream, events, columns=columns) for stream in STREAMS[query]]
        tables: list[tuple[int, pa.Table]] = []
        before = time.process_time()
        for second, parts in enumerate(zip(*pushes, strict=True), 1):
            for push in parts:
                push()
            engine.advance(None, second * 1_000)
            tables.extend((evaluation.time, evaluation.answer.to_arrow()) for evaluation in standing.poll())
        spent = time.process_time() - before
        assert not engine.dead_letters()
    return spent, _answer(query, tables)


def _pushes(engine: penstock.Engine, stream: str, events: Events, *, columns: bool) -> list[Any]:
    """Return a call for each second. Event times are 1 ms later than in the files, because a window excludes its begin
    and includes its end, and those of the peers do the reverse.
    """
    seconds: list[list[Event]] = [[] for _ in range(events.seconds)]
    for event in events.streams[stream]:
        seconds[int(event["ts"]) // 1_000].append(event)
    calls = []
    for part in seconds:
        if columns:
            rows = [row for event in part for row in _triples(stream, event)]
            at, subjects, predicates, objects = zip(*rows, strict=True)
            ids = [engine.encode(list(terms)) for terms in (subjects, predicates, objects)]
            arguments = (np.array(at, np.int64), *ids)
            calls.append(lambda a=arguments: engine.push_columns(_IRI + stream, *a))
        else:
            data = [(int(event["ts"]) + 1, json.dumps(event).encode()) for event in part]
            calls.append(lambda d=data: engine.push_events(_IRI + stream, d))
    return calls


def _triples(stream: str, event: Event) -> Iterator[tuple[int, Any, Any, Any]]:
    from rdflib import Literal, URIRef  # noqa: PLC0415 - slow to import

    subject = _SUBJECTS[stream]
    for name, value in event.items():
        if name not in (subject, "ts"):
            term = URIRef(f"{_IRI}{_KINDS[name]}/{value}") if name in _KINDS else Literal(value)
            yield int(event["ts"]) + 1, URIRef(f"{_IRI}{subject}/{event[subject]}"), URIRef(_IRI + name), term


def _answer(query: str, tables: list[tuple[int, pa.Table]]) -> Answer:
    def values(table: pa.Table, name: str) -> list[str]:
        return [row["value"] for row in table.column(name).to_pylist()]

    def numbers(table: pa.Table, name: str) -> list[int]:
        return [int(text.rsplit("/", 1)[-1]) for text in values(table, name)]

    match query:
        case "q1":
            prices = [number for _, table in tables for number in numbers(table, "price")]
            return [(len(prices), sum(prices))]
        case "q2":
            return sorted(row for _, t in tables for row in zip(numbers(t, "a"), numbers(t, "p"), strict=True))
        case "q3":
            return sorted(row for _, t in tables for row in zip(numbers(t, "a"), values(t, "name"), strict=True))
        case "q5":
            return [(time, *sorted(numbers(table, "n"), reverse=True)) for time, table in tables]
        case "q7":
            return [(time, *numbers(table, "price")) for time, table in tables]
    return sorted((time, number) for time, table in tables for number in numbers(table, "s"))
