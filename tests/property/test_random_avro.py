"""The decoder of Avro, compared with fastavro: random schemas, random and damaged data."""

from __future__ import annotations

import io
import json
import struct
from random import Random

import fastavro

from penstock.mapping.encodings.avro_schema import compile_avro
from penstock.mapping.mapping_limits import MAPPING_LIMITS
from support.random_avro import Float, RandomSchema

CASES = 1_500
EACH = 4  # data of a schema


def same(found, expected):
    if isinstance(expected, Float):
        return struct.pack("f", found) == struct.pack("f", expected)
    if isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], v) for k, v in expected.items())
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return type(found) is type(expected) and str(found) == str(expected)


def decoded(schema, messages):
    return schema.decode(messages, 0, 128, 1 << 16, 256)


def test_data_become_the_json_values_that_the_schema_describes():
    for seed in range(CASES):
        made = RandomSchema(Random(seed))
        schema = compile_avro(made.schema, MAPPING_LIMITS)
        pairs = [made.datum() for _ in range(EACH)]
        texts = decoded(schema, [made.encoded(datum) for datum, _ in pairs])
        for text, (datum, expected) in zip(texts, pairs, strict=True):
            assert isinstance(text, bytes), (made.schema, datum, text)
            assert same(json.loads(text), expected), (made.schema, datum, text)


def test_damaged_data_are_refused_or_are_other_data_of_the_schema():
    refused = accepted = 0
    for seed in range(CASES):
        random = Random(seed)
        made = RandomSchema(random)
        schema = compile_avro(made.schema, MAPPING_LIMITS)
        data = bytearray(made.encoded(made.datum()[0]))
        for _ in range(random.randint(1, 3)):
            if data and random.random() < 0.7:
                data[random.randrange(len(data))] = random.getrandbits(8)
            else:
                data = data[: random.randint(0, len(data))]
        (text,) = decoded(schema, [bytes(data)])
        if isinstance(text, str):
            refused += 1
            assert text.startswith("$"), text
            continue
        accepted += 1
        json.loads(text)
        body = io.BytesIO(data)
        fastavro.schemaless_reader(body, _plain(made.schema))
        assert body.tell() == len(data)
    assert refused > CASES // 4
    assert accepted > CASES // 10


def _plain(schema):
    """Return a schema without logical types, whose values Python cannot always represent."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if isinstance(schema, dict):
        return {name: _plain(value) for name, value in schema.items() if name != "logicalType"}
    return schema
