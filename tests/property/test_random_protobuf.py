"""The decoder of Protobuf, compared with Python's own: random schemas, random, merged and damaged messages."""

from __future__ import annotations

import json
import re
from random import Random

from google.protobuf.message import DecodeError

from penstock.mapping.encodings.protobuf_schema import compile_files
from penstock.mapping.mapping_limits import MAPPING_LIMITS
from support.random_protobuf import RandomProtobuf, expected, same

CASES = 2_000
EACH = 4  # messages of a schema
STRICTER = re.compile("UTF-8|timestamp|duration|years 1 to 9999|nested|group|64 bits|field number|wire type|end within")
"""Reasons for which a mapping refuses what Python accepts: its text has no such values, or bounds them."""


def decoded(schema, messages):
    return schema.schema.decode(0, messages, 0, 128, 1 << 16, 256)


def test_messages_become_the_json_values_that_the_schema_describes():
    for seed in range(CASES):
        made = RandomProtobuf(Random(seed))
        schema = compile_files(made.files, MAPPING_LIMITS)
        messages = [made.message() for _ in range(EACH)]
        texts = decoded(schema, [message.SerializeToString() for message in messages])
        for text, message in zip(texts, messages, strict=True):
            assert isinstance(text, bytes), (seed, message, text)
            assert same(json.loads(text), expected(message)), (seed, made.file, message, text)


def test_a_message_that_is_continued_is_merged():
    for seed in range(CASES):
        made = RandomProtobuf(Random(f"merged {seed}"))
        schema = compile_files(made.files, MAPPING_LIMITS)
        data = b"".join(made.message().SerializeToString() for _ in range(2))
        whole = made.type()
        whole.ParseFromString(data)
        (text,) = decoded(schema, [data])
        if isinstance(text, str):
            assert STRICTER.search(text), (seed, text)  # the seconds of one duration, the nanoseconds of another
            continue
        assert same(json.loads(text), expected(whole)), (seed, made.file, data, text)


def test_damaged_messages_are_refused_or_are_other_messages_of_the_schema():
    refused = accepted = 0
    for seed in range(2 * CASES):
        random = Random(f"damaged {seed}")
        made = RandomProtobuf(random, maps=False)  # Python leaves out the entries of maps that have unknown fields
        schema = compile_files(made.files, MAPPING_LIMITS)
        data = bytearray(made.message().SerializeToString())
        for _ in range(random.randint(1, 3)):
            if data and random.random() < 0.7:
                data[random.randrange(len(data))] = random.getrandbits(8)
            else:
                data = data[: random.randint(0, len(data))]
        (text,) = decoded(schema, [bytes(data)])
        whole = made.type()
        try:
            whole.ParseFromString(bytes(data))
        except DecodeError:
            refused += 1
            assert isinstance(text, str), (seed, made.file, bytes(data), text)
            assert text.startswith("$"), text
            continue
        if isinstance(text, str):
            assert STRICTER.search(text), (seed, made.file, bytes(data), text)
            continue
        accepted += 1
        assert same(json.loads(text), expected(whole)), (seed, made.file, bytes(data), text)
    assert refused > CASES // 4
    assert accepted > CASES // 4
