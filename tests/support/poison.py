"""Hostile input for every interface ("door") of a cluster. The seed, the door's name and a number determine each input."""

from __future__ import annotations

import json
import random
import threading
from typing import TYPE_CHECKING

from tests.fuzz.mutation import mutated

if TYPE_CHECKING:
    from collections.abc import Callable

RDF = {
    "application/n-triples": ['<http://p/a> <http://p/b> "c"@en .\n_:x <http://p/d> "1.5"^^<http://p/double> .'],
    "text/turtle": ["@prefix p: <http://p/> .\np:a p:b [ p:c (1 2.0 true) ] ; p:d '''x\ny'''@de ."],
    "application/n-quads": ["<http://p/a> <http://p/b> <http://p/c> <http://p/g> ."],
    "application/trig": ["@prefix p: <http://p/> . p:g { p:a p:b p:c }"],
    "application/rdf+xml": [
        """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:p="http://p/">
        <rdf:Description rdf:about="http://p/a"><p:b rdf:parseType="Literal"><i>x</i></p:b></rdf:Description></rdf:RDF>"""
    ],
    "application/ld+json": ['{"@context": {"b": "http://p/b"}, "@id": "http://p/a", "b": [1, {"@list": [true, null]}]}'],
}  # fmt: skip
QUERIES = [
    "SELECT ?s (COUNT(*) AS ?n) WHERE { ?s ?p ?o OPTIONAL { ?o ?q ?r } FILTER(?n > 1) } GROUP BY ?s ORDER BY ?n LIMIT 5",
    "REGISTER QUERY q AS SELECT ?s FROM STREAM <http://p/s> [RANGE 10s STEP 1s] WHERE { ?s <http://p/b> ?o }",
    "REGISTER ISTREAM q AS SELECT * FROM NAMED STREAM <http://p/s> [TRIPLES 10] WHERE { GRAPH <http://p/s> { ?s ?p ?o } }",
    "CONSTRUCT { ?s <http://p/x> ?o } WHERE { ?s (<http://p/a>|^<http://p/b>)* ?o }",
    "INSERT DATA { <http://p/a> <http://p/b> 1 . GRAPH <http://p/g> { <http://p/a> <http://p/b> 'x' } }",
]
DECLARATIONS = [
    '{"iri": "http://p/s1", "batch_ms": 100, "lateness_ms": 0, "timing": ["http://p/b"], "retention_ms": 0}',
    '{"iri": "http://p/s2", "timing": "all", "absorb_into": "http://p/g", "idle_timeout_ms": 100, "slice_mb": 1}',
]
_LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
EXTREMES: dict[str, Callable[[int], str]] = {
    "application/rdf+xml": lambda _: f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "lol">{_LAUGHS}]><r>&l9;</r>',
    "text/turtle": lambda size: f'<http://p/a> <http://p/b> "{"x" * size}" .',
    "application/ld+json": lambda size: "[" * min(size, 1 << 20),
    "application/n-triples": lambda size: f'<http://p/a> <http://p/b> "{chr(1) * (size // 4)}" .',
    "application/trig": lambda size: "{" * min(size, 1 << 22),
    "application/n-quads": lambda size: "<http://p/a> <http://p/b> <http://p/c> <http://p/g> .\n" * (size // 54),
}
LONG_QUERIES: list[Callable[[int], str]] = [
    lambda size: "SELECT * WHERE { " + " UNION ".join(["{ ?s ?p ?o }"] * (size // 20)) + " }",
    lambda size: f"SELECT * WHERE {{ ?s {'/'.join(['<http://p/b>'] * (size // 14))} ?o }}",
    lambda size: "SELECT * WHERE " + "{" * min(size, 1 << 18),
    lambda size: f"SELECT * WHERE {{ ?s ?p '{'x' * size}' }}",
]


class Inputs:
    """Inputs of one run. At most `large` of them are larger than 64 KiB."""

    def __init__(self, seed: int, large: int) -> None:
        self._seed = seed
        self._large = large
        self._lock = threading.Lock()

    def rng(self, door: str, number: int) -> random.Random:
        """Return the random generator of an input."""
        return random.Random(f"{self._seed} {door} {number}")

    def size(self, rng: random.Random) -> int:
        """Return the length of an extreme input in bytes: up to 60 MiB, but seldom that long."""
        size = rng.choice([1 << 10, 1 << 14, 1 << 16, 1 << 20, 20 << 20, 60 << 20])
        if size <= 1 << 16:
            return size
        with self._lock:
            if self._large <= 0:
                return 1 << 16
            self._large -= 1
        return size

    def rdf(self, rng: random.Random) -> tuple[str, bytes]:
        """Return a content type, and a document that may be of that type."""
        kind = rng.choice(list(RDF))
        if rng.random() < 0.05:
            return kind, EXTREMES[kind](self.size(rng)).encode()
        return kind, self._bytes(rng, RDF[kind])

    def query(self, rng: random.Random) -> bytes:
        if rng.random() < 0.03:
            return rng.choice(LONG_QUERIES)(self.size(rng)).encode()
        return self._bytes(rng, QUERIES)

    def json(self, rng: random.Random) -> bytes:
        if rng.random() < 0.03:
            return b"[" * self.size(rng)
        return self._bytes(rng, [*DECLARATIONS, json.dumps({"p": json.loads(DECLARATIONS[0])})])

    def any(self, rng: random.Random) -> bytes:
        return rng.choice(
            [self.query, self.json, lambda each: self.rdf(each)[1], lambda each: each.randbytes(each.randrange(2000))]
        )(rng)

    @staticmethod
    def _bytes(rng: random.Random, texts: list[str]) -> bytes:
        if rng.random() < 0.1:
            return rng.choice(texts).encode()
        made = bytearray(mutated(rng.randrange(1 << 60), texts).encode("utf-8", "surrogatepass"))
        if made and rng.random() < 0.2:
            made[rng.randrange(len(made))] = rng.randrange(256)
        return bytes(made)
