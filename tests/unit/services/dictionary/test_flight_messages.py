"""The messages of Flight requests are checked however their bytes are cut into frames."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from penstock.services.dictionary.flight_messages import MessageCheck


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def message(content: bytes, compressed: int = 0) -> bytes:
    return bytes([compressed]) + len(content).to_bytes(4, "big") + content


def arrow(table: pa.Table, codec: str | None = None) -> list[tuple[bytes, bytes]]:
    """Return the metadata and body of each Arrow message of a table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)
    reader, found = pa.ipc.MessageReader.open_stream(sink.getvalue()), []
    while True:
        try:
            each = reader.read_next_message()
        except StopIteration:
            return found
        found.append((each.metadata.to_pybytes(), each.body.to_pybytes() if each.body.size else b""))


def accepted(request: bytes, random: Random | None = None) -> bool:
    check, at = MessageCheck(), 0
    while at < len(request):
        step = len(request) if random is None else random.choice([1, 2, 7, 100, 100_000])
        if not check.accepts(memoryview(request)[at : at + step]):
            return False
        at += step
    return True


TABLE = pa.table({"lexical": ["x" * 3_000_000, "y"]})
(SCHEMA, _), (BATCH, BODY) = arrow(TABLE)
(_, _), (COMPRESSED, SMALL) = arrow(TABLE, "zstd")
HONEST = message(field(1, field(2, b"encode")) + field(2, SCHEMA)) + message(field(2, BATCH) + field(1000, BODY))


@pytest.mark.parametrize("seed", range(20))
def test_an_honest_request_is_accepted_however_it_is_cut(seed):
    assert accepted(HONEST * 2 + message(b""), Random(seed))


@pytest.mark.parametrize(
    "request_",
    [
        message(field(2, COMPRESSED) + field(1000, SMALL)),
        message(field(2, BATCH) + field(2, COMPRESSED) + field(1000, SMALL)),
        message(field(2, COMPRESSED) + field(2, BATCH) + field(1000, BODY)),
        message(field(1000, b"") + field(2, COMPRESSED)),
        message(field(2, BATCH) + field(1000, BODY) + field(2, COMPRESSED)),
        message(field(1, b"x" * (1 << 20)) + field(2, BATCH) + field(1000, BODY)),
        message(field(2, BATCH) + field(1000, BODY), compressed=1),
        message(field(2, arrow(pa.table({"a": pa.array(["x"]).dictionary_encode()}))[1][0])),
        message(field(2, b"")),
        message(b"\x08\x01"),
        message(b"\xff" * 20),
    ],
    ids=["compressed", "twice", "first", "after", "last", "long", "grpc", "dictionary", "empty", "number", "endless"],
)
def test_others_are_not(request_):
    assert accepted(HONEST)
    for seed in range(3):
        assert not accepted(HONEST + request_, Random(seed))


def test_random_damage_is_accepted_or_not():
    random = Random(1)
    short = message(field(1, b"c") + field(2, SCHEMA)) + message(field(2, BATCH) + field(1000, BODY[:64]))
    for _ in range(3_000):
        damaged = bytearray(short)
        for _ in range(random.choice([1, 2, 8])):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        accepted(bytes(damaged), random)
