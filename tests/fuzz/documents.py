"""Fuzzing of documents in all formats: `PYTHONPATH=libs:tests python -m fuzz.documents --seconds 600 [--first SEED]`.

A mutated or oversized document is read or refused with DataError, within bounds of memory and time. As an event of the
plain adaptor it becomes tuples or a dead letter, and the good event behind it becomes tuples.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from fuzz.mutation import mutated
from penstock.core import _native as native
from penstock.errors import DataError
from penstock.log import START, MemoryLog, Partition, Record, Topic
from penstock.log.topics import TopicNames
from penstock.rdf.formats import Format
from penstock.rdf.parsing import parse
from penstock.services.adaptor.adaptor import Adaptor
from penstock.wire import StreamDeclaration, Tuples, encode
from support.hostile import DOCUMENTS, RDF, TOKENS
from support.records import record_of

if TYPE_CHECKING:
    import numpy as np

MAX_GROWTH_KB = 1_500 << 10
"""Growth of this process: terms of an expanding document, on top of the event itself."""
MAX_S = 120.0
"""Elapsed time of one document. Its CPU time is bounded by some seconds."""
GOOD = b"<http://e/good> <http://e/is> <http://e/here> ."
PLAIN = {
    "turtle": ['@prefix e: <http://e/> . e:s e:p "v"@en, 01, 1.5e3 ; e:q [ e:r ( 1 2 "x" ) ] . # end', "<u:s> a <<( <u:a> <u:b> 1 )>> ."],
    "trig": ["@base <http://e/> . <g> { <s> <p> _:b . _:b <q> true } <s> <p> 'x' ."],
    "xml": [f'<?xml version="1.0"?><rdf:RDF {RDF}><e:C rdf:about="http://e/s" xml:lang="en"><e:p rdf:parseType="Literal"><a/></e:p><e:q rdf:resource="u:o"/></e:C></rdf:RDF>'],
    "json-ld": ['{"@context": {"e": "http://e/", "n": {"@id": "e:n", "@type": "@id"}}, "@id": "e:s", "e:p": ["v", 1, {"@list": [1, 2]}], "n": "e:o"}'],
    "nt": ['<u:s> <u:p> "v"@en .\n_:b <u:p> "1"^^<u:t> .'],
}  # fmt: skip


def document(seed: int) -> tuple[str, bytes]:
    """Return a format and a document: mutated, oversized, both, or bytes of chance."""
    rng = random.Random(seed)
    kind = rng.random()
    if kind < 0.5:
        name = rng.choice(sorted(PLAIN))
        data = mutated(seed, PLAIN[name]).encode("utf-8", "surrogatepass")
    elif kind < 0.85:
        name, make = rng.choice(sorted(DOCUMENTS.values(), key=str))
        text = make(rng.choice([500, 4_000, 8_000, 9_000, 40_000, 200_000]))
        data = (mutated(seed, [text]) if len(text) < 10_000 and rng.random() < 0.5 else text).encode(
            "utf-8", "surrogatepass"
        )
    elif kind < 0.95:
        name, make = rng.choice(sorted(TOKENS.values(), key=str))
        data = make(rng.choice([1_000, 100_000, 1 << 20, 17 << 20 if rng.random() < 0.1 else 2 << 20])).encode()
    else:
        name, data = rng.choice(sorted(PLAIN)), rng.randbytes(rng.choice([1, 100, 10_000, 100_000]))
    if rng.random() < 0.1:
        data = data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-8-sig", "utf-32"]))
    for _ in range(rng.choice([0, 0, 0, 1, 5])):
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.randbytes(rng.choice([0, 1, 3])) + data[at + rng.choice([0, 1, 50]) :]
    return name, data


def memory_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS:")).split()[1])


def fault(name: str, data: bytes) -> str | None:
    """Return what is wrong with how a document is read, or None."""
    began, before = time.monotonic(), memory_kb()
    try:
        parse(native.Dictionary(), data, name)
    except DataError as error:
        if not str(error):
            return "DataError without a word"
    except BaseException as error:  # noqa: BLE001  that is what fuzzing looks for
        return f"{type(error).__name__}: {error}"
    if memory_kb() - before > MAX_GROWTH_KB:
        return f"memory grew by {(memory_kb() - before) >> 10} MB"
    took = time.monotonic() - began
    return f"took {took:.0f} s" if took > MAX_S else None


def fuzz(first: int, seconds: float, count: int | None = None) -> tuple[int, list[str]]:
    """Read documents from seed `first` on; returns how many, and the faults."""
    faults, seed, end = list[str](), first, time.monotonic() + seconds
    while time.monotonic() < end and (count is None or seed < first + count):
        what = fault(*document(seed))
        if what:
            faults.append(f"seed {seed}: {what}")
        seed += 1
    return seed - first, faults


class _Terms:
    """The dictionary service, in this process; made anew before it is large."""

    def __init__(self) -> None:
        self.dictionary = native.Dictionary()

    def encode(self, terms: list[tuple[int, str, str, str]]) -> np.ndarray:
        if self.dictionary.bytes() > 256 << 20:
            self.dictionary = native.Dictionary()
        return self.dictionary.intern_many(list(terms))


def fuzz_adaptor(first: int, seconds: float, count: int | None = None, batch: int = 20) -> tuple[int, list[str]]:
    """Give batches of documents, a good event behind each, to a plain adaptor; returns how many, and the faults."""
    faults, seed, end = list[str](), first, time.monotonic() + seconds
    while time.monotonic() < end and (count is None or seed < first + count):
        what = _adapted([document(each) for each in range(seed, seed + batch)])
        if what:
            faults.append(f"seeds from {seed}: {what}")
        seed += batch
    return seed - first, faults


def _adapted(documents: list[tuple[str, bytes]]) -> str | None:
    names, log = TopicNames(), MemoryLog()
    events, tuples = names.events("s"), names.tuples("s")
    log.create([Topic(events), Topic(tuples), Topic(names.control, 1, "compact"), Topic(names.dead_letter)])
    declaration = StreamDeclaration(1, "http://x/s", "s", 100, 0, True, (), 0, 10_000, 86_400_000)
    records = [Record(names.control, encode(declaration), b"stream:s")]
    for name, data in documents:
        content_type = (("content-type", Format.named(name).media_type.encode()),)
        records += [Record(events, data, headers=content_type), Record(events, GOOD)]
    log.writer().append(records)
    adaptor, before = Adaptor(log, names, _Terms(), names.adaptor_group), memory_kb()
    try:
        while adaptor.step():
            pass
    except BaseException as error:  # noqa: BLE001  that is what fuzzing looks for
        return f"{type(error).__name__}: {error}"
    made = [record_of(message) for message in log.reader({Partition(tuples): START}).poll(10_000)]
    taken = {at for record in made if isinstance(record, Tuples) for at in record.offsets.tolist()}
    letters = {
        int(dict(message.headers)["source"].rsplit(b"/", 1)[1])
        for message in log.reader({Partition(names.dead_letter): START}).poll(10_000)
    }
    adaptor.close()
    if taken & letters or taken | letters != set(range(2 * len(documents))):
        return f"tuples of {sorted(taken)}, dead letters of {sorted(letters)}"
    if letters & set(range(1, 2 * len(documents), 2)):
        return f"good events are dead letters: {sorted(letters)}"
    grown = memory_kb() - before
    return f"memory grew by {grown >> 10} MB" if grown > 2 * MAX_GROWTH_KB else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--adaptor", action="store_true", help="as events of a plain adaptor")
    arguments = parser.parse_args()
    tried, faults = (fuzz_adaptor if arguments.adaptor else fuzz)(arguments.first, arguments.seconds)
    for found in faults:
        print(found[:500])
    print(f"{tried} documents, {len(faults)} faults")
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main())
