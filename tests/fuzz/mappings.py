"""Fuzzing of mappings and schemas: `PYTHONPATH=libs:tests python -m fuzz.mappings --seconds 600 [--first SEED]`.

A mutated or oversized declaration (RML, CONSTRUCT, JSON-LD context, schema in Avro or Protobuf) is compiled or refused
with DataError, within bounds of memory and time. So are messages for it: mapped, or refused.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from typing import TYPE_CHECKING, Any

from fuzz import hostile_mappings as hostile
from fuzz.documents import MAX_GROWTH_KB, memory_kb
from fuzz.mutation import mutated
from penstock.errors import DataError
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping
from support import random_avro, random_mappings, random_protobuf

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CPU_S = 10.0
"""CPU time of one declaration, or of one message, with the processes that it starts."""
SIZES = (10, 300, 4_000, 20_000, 100_000)
Case = tuple[dict[str, Any], list[bytes]]
"""The settings of a mapping, and messages."""


def _rml(rng: random.Random) -> Case:
    settings = random_mappings.mapping(rng)
    messages = [random_mappings.message(rng, settings["format"]) for _ in range(3)]
    return settings | {"rml": mutated(rng.getrandbits(32), [settings["rml"]])}, messages


def _construct(rng: random.Random) -> Case:
    return {"construct": mutated(rng.getrandbits(32), hostile.CONSTRUCTS)}, _json_messages(rng)


def _context(rng: random.Random) -> Case:
    text = mutated(rng.getrandbits(32), hostile.CONTEXTS)
    try:
        return {"context": json.loads(text)}, _json_messages(rng)
    except (ValueError, RecursionError):
        return {"context": text}, []


def _avro(rng: random.Random) -> Case:
    made = random_avro.RandomSchema(rng)
    messages = [made.encoded(made.datum()[0]) for _ in range(2)]
    schema = json.dumps(made.schema)
    if rng.random() < 0.7:
        schema = mutated(rng.getrandbits(32), [schema, *hostile.AVROS])
    return hostile.ANY | {"format": "avro", "schema": schema}, [_damaged(rng, each) for each in messages]


def _protobuf(rng: random.Random) -> Case:
    schema = mutated(rng.getrandbits(32), hostile.PROTOS)
    message = random_protobuf.RandomProtobuf(rng).message().SerializeToString()
    messages = [message, _damaged(rng, message), rng.randbytes(rng.choice([0, 9, 300]))]
    return hostile.ANY | {"format": "protobuf", "schema": schema}, messages


def _oversized(rng: random.Random) -> Case:
    make = rng.choice(sorted(hostile.SHAPES.values(), key=lambda each: each.__name__))
    return make(rng.choice(SIZES))


def _json_messages(rng: random.Random) -> list[bytes]:
    large = rng.choice(sorted(hostile.MESSAGES.values(), key=lambda each: each.__name__))
    return [random_mappings.message(rng, "json") for _ in range(2)] + [large(rng.choice(SIZES))] * (rng.random() < 0.1)


def _damaged(rng: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(rng.choice([0, 1, 3])):
        at = rng.randrange(len(made) + 1)
        made[at : at + rng.choice([0, 1, 4])] = rng.randbytes(rng.choice([0, 1, 3]))
    return bytes(made)


MAKERS: list[Callable[[random.Random], Case]] = [*[_rml, _construct, _context, _avro] * 4, _protobuf, _oversized]


def case(seed: int) -> Case:
    rng = random.Random(seed)
    return rng.choice(MAKERS)(rng)


def _cpu_s() -> float:
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + started.ru_utime + started.ru_stime


def fault(settings: dict[str, Any], messages: list[bytes]) -> str | None:
    """Return what is wrong with how a declaration and its messages are taken, or None."""
    before = memory_kb()
    what, compiled = _checked("declaration", lambda: StreamMapping(settings))
    for number, data in enumerate(messages if compiled is not None else []):
        if what is None:
            what, _ = _checked(f"message {number}", lambda data=data: _mapped(compiled, data))
    if what is None and memory_kb() - before > MAX_GROWTH_KB:
        return f"memory grew by {(memory_kb() - before) >> 10} MB"
    return what


def _mapped(compiled: StreamMapping, data: bytes) -> None:
    message = compiled.decoded(SourceMessage(data, 5), None)
    if compiled.is_encoded:
        json.loads(message.value)
    compiled.events(message)


def _checked(name: str, run: Callable[[], Any]) -> tuple[str | None, Any]:
    began, made, what = _cpu_s(), None, None
    try:
        made = run()
    except DataError as error:
        if not str(error):
            what = f"{name}: DataError without a word"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        what = f"{name}: {type(error).__name__}: {error}"
    took = _cpu_s() - began
    return what or (f"{name}: took {took:.1f} s" if took > MAX_CPU_S else None), made


def fuzz(first: int, seconds: float, count: int | None = None) -> tuple[int, list[str]]:
    """Try cases from seed `first` on; returns how many, and the faults."""
    faults, seed, end = list[str](), first, time.monotonic() + seconds
    while time.monotonic() < end and (count is None or seed < first + count):
        settings, messages = case(seed)
        what = fault(settings, messages)
        if what:
            faults.append(f"seed {seed}: {what[:300]}\n{str(settings)[:300]}")
        seed += 1
    return seed - first, faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    tried, faults = fuzz(arguments.first, arguments.seconds)
    print("\n".join(faults))
    print(f"{tried} cases, {len(faults)} faults")
    return min(len(faults), 1)


if __name__ == "__main__":
    sys.exit(main())
