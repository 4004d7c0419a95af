"""Test of an installed release: a stream, a query, events through Kafka, and the expected answer."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock import Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TIMEOUT_S = 120.0


def properties() -> dict[str, str]:
    """Return the librdkafka properties that the services have."""
    given = {
        name.removeprefix("PENSTOCK_KAFKA_").lower().replace("_", "."): value
        for name, value in os.environ.items()
        if name.startswith("PENSTOCK_KAFKA_")
    }
    folder = os.environ.get("PENSTOCK_SECRET_PROPERTIES_DIR")
    files = [] if folder is None else [file for file in Path(folder).iterdir() if not file.name.startswith(".")]
    for file in files:
        given[file.name] = file.read_text(encoding="utf-8").strip()
    return given


def number(answer: Iterable[Mapping[str, Any]]) -> int:
    """Return ?n of an answer with one row."""
    [row] = answer
    return int(row["n"].value)


def main() -> int:
    """Push events of ten seconds and compare each second's count with the number of its events."""
    name = f"helm_test_{int(time.time())}"
    iri = f"http://penstock.example/{name}"
    with Client(
        os.environ["PENSTOCK_BOOTSTRAP_SERVERS"],
        url=os.environ["COORDINATORS"],
        prefix=os.environ["PENSTOCK_PREFIX"],
        kafka=properties(),
        token=os.environ.get("TOKEN"),
        ca=os.environ.get("CA"),
    ) as client:
        client.declare_stream(iri, name=name, batch_ms=100, timing="all")
        window = f"FROM STREAM <{iri}> [RANGE 1s STEP 1s]"
        text = f"REGISTER QUERY {name} AS SELECT (COUNT(*) AS ?n) {window} WHERE {{ ?s ?p ?o }}"
        query = client.register(text)
        expected = {}
        for second in range(1, 11):
            for i in range(second):
                client.push(name, f"<urn:s{second}-{i}> <urn:p> <urn:o> .", second * 1000 - 500)
            expected[second * 1000] = second
        client.advance(name, 11_000)
        got: dict[int, int] = {}
        deadline = time.monotonic() + TIMEOUT_S
        while len(got) < len(expected) and time.monotonic() < deadline:
            for evaluation in query.poll(timeout_s=1):
                if evaluation.time in expected:
                    got[evaluation.time] = number(evaluation.answer)
        client.stop(name)
        client.drop_stream(iri)
    sys.stdout.write(f"expected {expected}\nanswered {got}\n")
    return 0 if got == expected else 1


if __name__ == "__main__":
    sys.exit(main())
