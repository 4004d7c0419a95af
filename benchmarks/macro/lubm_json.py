"""LUBM-10 q1-q7 as SPARQL Results JSON through Python, beside pyoxigraph and sparq-rdf in the same run.

Each engine uses its fastest way from a text to a JSON document. The text is the same string each time, as from a
service. The documents are compared as bags of solutions.
"""

from __future__ import annotations

import importlib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyoxigraph

import penstock
from benchmarks.harness import LeftOutError, Row, check, median_spent, need
from benchmarks.macro import lubm_data

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Finding

    Answering = Callable[[str], str | bytes]

COMMAND = "python -m benchmarks lubm_json"
SMALL_US = 8.0  # upper limit of the target of q4 and q5
_TIMES_FASTER = 2


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield a row for each of q1-q7."""
    folder = need("data/queries")
    texts = [(folder / f"lubm_q{i}.rq").read_text() for i in range(1, 8)]
    size = 1 if tiny else 10
    data = lubm_data.whole(size)
    peers = answering(data)
    with penstock.Engine() as engine:
        engine.load(data)
        for i, text in enumerate(texts):
            yield _row(engine, peers, text, f"LUBM-{size} q{i + 1}", small=i in (3, 4), tiny=tiny)


def answering(data: Path) -> dict[str, Answering]:
    """Return what answers a text as JSON for each peer, after it has loaded `data`."""
    return {"pyoxigraph": _pyoxigraph(data), "sparq-rdf": _sparq(data)}


def _pyoxigraph(data: Path) -> Answering:
    store = pyoxigraph.Store()
    store.bulk_load(path=str(data), format=pyoxigraph.RdfFormat.N_TRIPLES)

    def answer(text: str) -> bytes:
        found = store.query(text).serialize(format=pyoxigraph.QueryResultsFormat.JSON)  # type: ignore[union-attr]
        assert found is not None
        return found

    return answer


def _sparq(data: Path) -> Answering:
    try:
        sparq = importlib.import_module("sparq")
    except ImportError:
        raise LeftOutError("sparq-rdf is not installed (the extra bench)") from None
    answer: Answering = sparq.Graph.load(str(data), "ntriples").query_json
    return answer


def _row(engine: penstock.Engine, peers: dict[str, Answering], text: str, what: str, *, small: bool, tiny: bool) -> Row:
    def answer() -> str:
        return engine.query(text).to_json()  # type: ignore[union-attr]

    bag = _bag(answer())
    for name, peer in peers.items():
        check(bag == _bag(peer(text)), True, f"{what}: {name} has the same solutions")
    rows = bag.total()
    ours = median_spent(answer, 2 if tiny else 31 if rows > 1_000 else 301)
    theirs = {name: median_spent(lambda: peer(text), 2 if tiny else 7) for name, peer in peers.items()}  # noqa: B023
    best = min(theirs, key=lambda name: theirs[name].cpu)
    target = theirs[best].cpu / _TIMES_FASTER
    return Row(
        f"{what} ({rows} rows) as JSON, Python API, same text again",
        ours.cpu,
        "µs",
        COMMAND,
        f"{best}, the faster of {' and '.join(peers)}",
        theirs[best].cpu,
        min(target, SMALL_US) if small else target,
        clock="cpu",
        other_clock=ours.wall,
    )


def _bag(document: str | bytes) -> Counter[frozenset[tuple[str, str]]]:
    solutions: list[dict[str, Any]] = json.loads(document)["results"]["bindings"]
    return Counter(frozenset((name, term["value"]) for name, term in row.items()) for row in solutions)
