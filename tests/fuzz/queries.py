"""Fuzzing of query texts: `PYTHONPATH=libs:tests python -m fuzz.queries --seconds 600 [--first SEED]`.

Every mutated text must parse or give a QueryError that points into the text; what parses as a one-shot query must run
or give a PenstockError. Texts that do otherwise are written to corpus/queries, which `make test` replays.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import penstock
from fuzz.mutation import mutated
from property import cases
from property.script import Ask, Register
from support import shared

CORPUS = Path(__file__).parent / "corpus" / "queries"
DATA = b"""<urn:x:a> <urn:x:p> <urn:x:b> .\n<urn:x:b> <urn:x:p> <urn:x:a> .\n<urn:x:a> <urn:x:q> "1"^^<http://www.w3.org/2001/XMLSchema#integer> .
<urn:x:b> <urn:x:q> "x"@en .\n<urn:x:c> <urn:x:q> "2.5"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n_:n <urn:x:p> "2020-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"""
STREAM = "urn:x:stream/0"
RUN_LIMIT_S = 2.0


def seeds() -> list[str]:
    """Return texts to start from: the corpus, the random queries, and the W3C suite where it is there."""
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(CORPUS.glob("*"))]
    for number in range(40):
        texts += [op.text for op in cases.make(number).operations if isinstance(op, Register | Ask)]
    if shared.available("suites/w3c"):
        texts += [p.read_text(encoding="utf-8") for p in sorted(shared.SHARED.glob("suites/w3c/**/*.rq"))]
    return texts


def engine() -> Any:
    made = penstock.Engine()
    made.load(DATA, format="nt")
    for k in range(3):
        made.declare_stream(f"urn:x:stream/{k}")
    return made


def fault(text: str, target: Any) -> str | None:
    """Return what is wrong with how `text` is taken, or None."""
    try:
        parsed = penstock.parse(text, base="urn:x:base/")
    except penstock.QueryError as error:
        return _misplaced(error, text)
    except Exception as error:  # noqa: BLE001  that is what fuzzing looks for
        return f"parse: {type(error).__name__}: {error}"
    began = time.monotonic()
    try:
        if getattr(parsed, "continuous", False):
            _stand(target, text)
        elif hasattr(parsed, "form"):
            _consume(target.query(text, base="urn:x:base/", timeout_s=RUN_LIMIT_S, memory_mb=256))
    except penstock.PenstockError as error:
        if not str(error):
            return f"{type(error).__name__} without a word"
    except Exception as error:  # noqa: BLE001
        return f"run: {type(error).__name__}: {error}"
    if time.monotonic() - began > 10 * RUN_LIMIT_S:
        return f"ran {time.monotonic() - began:.0f} s against a limit of {RUN_LIMIT_S} s"
    return None


def _misplaced(error: penstock.QueryError, text: str) -> str | None:
    lines = text.splitlines() or [""]
    if not error.message:
        return "QueryError without a message"
    if not 1 <= error.line <= len(lines) + 1 or error.column < 1:
        return f"QueryError points at line {error.line}, column {error.column} of {len(lines)} lines"
    return None


def _stand(target: Any, text: str) -> None:
    """Register the query and stop it again, whatever else happens."""
    query = target.register(text, base="urn:x:base/")
    query.stop()


def _consume(answer: Any) -> None:
    if not isinstance(answer, bool):
        for _ in answer:
            pass


def keep(text: str) -> Path:
    CORPUS.mkdir(parents=True, exist_ok=True)
    path = CORPUS / (hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16] + ".rq")
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return path


def fuzz(first: int, seconds: float, count: int | None = None) -> tuple[int, list[str]]:
    """Try texts from seed `first` on, for some seconds or `count` texts; returns how many, and the faults."""
    texts, target, faults, seed = seeds(), engine(), list[str](), first
    end = time.monotonic() + seconds
    while time.monotonic() < end and (count is None or seed < first + count):
        text = mutated(seed, texts)
        what = fault(text, target)
        if what:
            faults.append(f"seed {seed}: {what}\n{text}")
        seed += 1
    target.close()
    return seed - first, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="write faulty texts into the corpus")
    arguments = parser.parse_args()
    tried, faults = fuzz(arguments.first, arguments.seconds)
    for found in faults:
        head, _, text = found.partition("\n")
        print(head, keep(text) if arguments.keep else repr(text[:300]))
    print(f"{tried} texts, {len(faults)} faults")
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main())
