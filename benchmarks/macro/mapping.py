"""JSON messages of 6 members to 5 triples each, by RML: mapped, and pushed to a stream with a standing query.

The peer is morph-kgc where it is installed: it maps the same messages from one file with the same mapping.
"""

from __future__ import annotations

import importlib
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import penstock
from benchmarks.harness import Row, check, median_spent, spent
from penstock.mapping.stream_mapping import StreamMapping

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks mapping"
TARGET_PER_S, MESSAGES, REPEATS = 300_000, 100_000, 3
IRI = "http://x/s"
MAX_BYTES = 1 << 20
RML = """@prefix rml: <http://w3id.org/rml/> . @prefix x: <http://x/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
<#r> rml:logicalSource [ rml:iterator "$" ; SOURCE ] ;
  rml:subjectMap [ rml:template "http://x/obs/{$.id}" ; rml:class x:Obs ] ;
  rml:predicateObjectMap [ rml:predicate x:by ; rml:objectMap [ rml:template "http://x/sensor/{$.sensor}" ] ] ,
    [ rml:predicate x:v ; rml:objectMap [ rml:reference "$.value" ; rml:datatype xsd:decimal ] ] ,
    [ rml:predicate x:unit ; rml:objectMap [ rml:reference "$.unit" ] ] ,
    [ rml:predicate x:room ; rml:objectMap [ rml:template "http://x/room/{$.room}" ] ] .
"""
QUERY = f"""REGISTER QUERY q AS SELECT (COUNT(?s) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s]
    WHERE {{ ?s <http://x/v> ?v }}"""


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield the rates of mapping and of pushing."""
    number = 1000 if tiny else MESSAGES
    messages = [(1001 + n // 10, json.dumps(_message(n)).encode()) for n in range(number)]
    mapping = {"rml": RML.replace("; SOURCE", "")}
    compiled = StreamMapping(mapping)
    batch = compiled.batch(messages, MAX_BYTES)
    assert batch is not None
    check(int(batch.counts.sum()), 5 * number, "mapping: triples")
    times = median_spent(lambda: compiled.batch(messages, MAX_BYTES), REPEATS)
    peer = _morph_kgc(number)
    yield _row("Mapping: JSON of 6 members to 5 triples, by RML", times.wall, times.cpu, number, peer, tiny=tiny)
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, timing="all", mapping=mapping)
        engine.register(QUERY)
        pushed = spent(lambda: engine.push_events(IRI, messages))
        check(len(engine.dead_letters()), 0, "mapping: dead letters")
    yield _row("Mapping: the same by push_events, with a standing query", pushed.wall, pushed.cpu, number, tiny=tiny)


def _message(number: int) -> dict[str, object]:
    value = 20 + number % 100 / 10
    sensor, room = f"s{number % 500}", number % 40
    return {"id": f"o{number}", "sensor": sensor, "value": value, "unit": "DegC", "room": room, "at": number}


def _row(name: str, wall: float, cpu: float, number: int, peer: float | None = None, *, tiny: bool) -> Row:
    return Row(
        name,
        number / cpu * 1e6,
        "messages/s",
        COMMAND,
        None if peer is None else "morph-kgc",
        peer,
        None if tiny else TARGET_PER_S,
        lower_is_better=False,
        clock="cpu",
        other_clock=number / wall * 1e6,
    )


def _morph_kgc(number: int) -> float | None:
    """Return its messages/s of processor time; None if it is not installed."""
    try:
        morph = importlib.import_module("morph_kgc")
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        data, mapping = Path(folder) / "data.json", Path(folder) / "mapping.ttl"
        data.write_text(json.dumps([_message(n) for n in range(number)]))
        source = f'rml:source "{data}" ; rml:referenceFormulation rml:JSONPath'
        mapping.write_text(RML.replace('"$" ; SOURCE', f'"$[*]" ; {source}').replace("{$.", "{").replace('"$.', '"'))
        before = sum(os.times()[:4])
        triples = morph.materialize_set(f"[CONFIGURATION]\nlogging_level: ERROR\n[D]\nmappings: {mapping}\n")
        cost = sum(os.times()[:4]) - before
    check(len(triples), 5 * number, "mapping: triples of morph-kgc")
    return number / cost
