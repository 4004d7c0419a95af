"""Fuzzing of N-Triples events against pyoxigraph: `PYTHONPATH=libs:tests python -m fuzz.triples --seconds 600`.

A mutated message must be taken with exactly the triples that pyoxigraph reads from it, or be refused with DataError.
What pyoxigraph reads must not be refused.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import pyoxigraph as ox

import penstock
from fuzz.mutation import mutated
from support.answers import isomorphic
from support.terms import from_rdflib, parse_triples

CORPUS = Path(__file__).parent / "corpus" / "triples"
SEEDS = [
    '<urn:x:a> <urn:x:p> <urn:x:b> .\n_:b1 <urn:x:p> "x\\u00e9\\n\\t\\"q\\""@en-GB .\n',
    '<urn:x:a> <urn:x:p> "1"^^<http://www.w3.org/2001/XMLSchema#integer> . # a comment\n\n_:a.b <urn:x:q> _:c .',
    '<http://ex.org/\u00e9?q=1#f> <urn:x:p> "\\U0001F600 \u20ac" .\r\n<urn:x:a>\t<urn:x:p>\t"54.0"^^<http://www.w3.org/2001/XMLSchema#double>\t.',
    '<urn:x:a> <urn:x:p> "" . <urn:x:a> <urn:x:p> "007"^^<http://www.w3.org/2001/XMLSchema#int> .',
]


def content(engine: Any) -> list[Any]:
    rows = engine.query("SELECT ?s ?p ?o WHERE { ?s ?p ?o }")
    return [tuple(from_rdflib(row[name]) for name in "spo") for row in rows]


def fault(text: str) -> str | None:
    """Return how engine and pyoxigraph differ on one message, or None."""
    try:
        expected: list[Any] | None = list(set(parse_triples(text)))
    except (SyntaxError, ValueError):
        expected = None
    with penstock.Engine() as engine:
        try:
            engine.load(text.encode("utf-8", "surrogatepass"), format="nt")
        except penstock.DataError as error:
            return f"refused: {error}" if expected is not None else None
        except Exception as error:  # noqa: BLE001  that is what fuzzing looks for
            return f"{type(error).__name__}: {error}"
        got = content(engine)
    if expected is None:
        return f"taken, though it is not N-Triples: {got}"
    return None if isomorphic(expected, got) else f"read as {got}"


def fuzz(first: int, seconds: float, count: int | None = None) -> tuple[int, list[str]]:
    texts = SEEDS + [path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*"))]
    faults, seed, end = list[str](), first, time.monotonic() + seconds
    while time.monotonic() < end and (count is None or seed < first + count):
        text = mutated(seed, texts)
        what = fault(text)
        if what:
            faults.append(f"seed {seed}: {what}\n{text}")
        seed += 1
    return seed - first, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    tried, faults = fuzz(arguments.first, arguments.seconds)
    for found in faults:
        head, _, text = found.partition("\n")
        print(head[:300], repr(text[:300]))
    print(f"{tried} messages, {len(faults)} faults (pyoxigraph {ox.__version__})")
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main())
