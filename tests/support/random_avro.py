"""Random Avro schemas, data of these schemas, and the JSON values that a mapping reads for these data."""

from __future__ import annotations

import io
import json
import math
import struct
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from uuid import UUID

import fastavro

TEXTS = ["", "a", "é", 'q"\\\n', "\U0001f600", "x" * 40, "\x00\x1f"]
SIMPLE = [
    "null",
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 0},
    {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 5},
    {"type": "string", "logicalType": "uuid"},
    {"type": "long", "logicalType": "unknown"},
]


class RandomSchema:
    """A schema. `random`: the source of its types and data."""

    def __init__(self, random):
        self.random = random
        self.named = {}
        self.schema = self.record(4)
        self.parsed = fastavro.parse_schema(json.loads(json.dumps(self.schema)))

    def record(self, depth):
        name = f"R{len(self.named)}"
        made = self.named[name] = {"type": "record", "name": name, "fields": []}
        for i in range(self.random.randint(0 if depth < 4 else 1, 5)):
            made["fields"].append({"name": f"f{i}", "type": self.type(depth - 1)})
        return made

    def type(self, depth):
        kind = self.random.randrange(10)
        if depth <= 0 or kind < 4:
            return self.random.choice(SIMPLE)
        if kind == 4:
            return {"type": "array", "items": self.type(depth - 1)}
        if kind == 5:
            return {"type": "map", "values": self.type(depth - 1)}
        if kind == 6:
            return self.define({"type": "enum", "symbols": ["A", "B", "LONGER"]})
        if kind == 7:
            return self.fixed()
        if kind == 8:
            others = [self.record(depth - 1)] if self.random.random() < 0.5 else ["string"]
            if self.named and self.random.random() < 0.3:
                others = [name for name, made in self.named.items() if made["type"] == "record"][:1]
            return ["null", "long", *others]
        return self.record(depth - 1)

    def fixed(self):
        size, logical = self.random.choice([(3, None), (16, "uuid"), (12, "duration"), (9, "decimal"), (0, None)])
        made = {"type": "fixed", "size": size}
        if logical is not None:
            made["logicalType"] = logical
        return self.define(made | ({"precision": 20, "scale": 3} if logical == "decimal" else {}))

    def define(self, made):
        name = f"N{len(self.named)}"
        self.named[name] = made | {"name": name}
        return self.named[name]

    def datum(self):
        """Return data as fastavro writes them, and the JSON value that a mapping reads."""
        return self.value(self.schema, 0)

    def encoded(self, datum):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, self.parsed, datum)
        return out.getvalue()

    def value(self, schema, depth):
        random = self.random
        if isinstance(schema, list):
            branches = schema[:2] if depth > 8 else schema
            branch = random.choice(branches)
            return self.value(branch, depth)
        if isinstance(schema, str) and schema in self.named:
            schema = self.named[schema]
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        if logical not in (None, "unknown"):
            return self.logical(schema, kind, logical)
        match kind:
            case "null":
                return None, None
            case "boolean":
                made = random.random() < 0.5
                return made, made
            case "int":
                made = random.choice([0, -1, 1, 2**31 - 1, -(2**31), random.randint(-(10**6), 10**6)])
                return made, made
            case "long":
                made = random.choice([0, 2**63 - 1, -(2**63), random.randint(-(10**15), 10**15)])
                return made, made
            case "float" | "double":
                return self.real(kind)
            case "bytes":
                made = random.randbytes(random.randint(0, 20))
                return made, made.hex().upper()
            case "string":
                made = random.choice(TEXTS)
                return made, made
            case "fixed":
                made = random.randbytes(schema["size"])
                return made, made.hex().upper()
            case "enum":
                made = random.choice(schema["symbols"])
                return made, made
            case "array":
                pairs = [self.value(schema["items"], depth + 1) for _ in range(self.count(depth))]
                return [a for a, _ in pairs], [b for _, b in pairs]
            case "map":
                pairs = {f"{k}é": self.value(schema["values"], depth + 1) for k in range(self.count(depth))}
                return {k: a for k, (a, _) in pairs.items()}, {k: b for k, (_, b) in pairs.items()}
            case _:
                pairs = {field["name"]: self.value(field["type"], depth + 1) for field in schema["fields"]}
                return {k: a for k, (a, _) in pairs.items()}, {k: b for k, (_, b) in pairs.items()}

    def count(self, depth):
        return self.random.randint(0, 3 if depth < 6 else 0)

    def real(self, kind):
        made = self.random.choice(
            [0.0, -0.0, 1.0, 1e300, 1e-7, math.inf, -math.inf, math.nan, self.random.gauss(0, 1e3)]
        )
        if kind == "float":
            made = 3.0 if abs(made) == 1e300 else struct.unpack("f", struct.pack("f", made))[0]
        if math.isnan(made):
            return made, "NaN"
        if math.isinf(made):
            return made, "INF" if made > 0 else "-INF"
        return made, Float(made) if kind == "float" else made

    def logical(self, schema, kind, logical):
        random = self.random
        seconds = random.choice([0, -1, random.randint(-(10**9), 4 * 10**9)])
        fraction = random.choice([0, 1, 120_000, 999_999]) if "micros" in logical else random.choice([0, 1, 500]) * 1000
        match logical:
            case "date":
                made = date(1970, 1, 1) + timedelta(days=random.randint(-700_000, 2_900_000))
                return made, made.isoformat()
            case "time-millis" | "time-micros":
                made = time(random.randrange(24), random.randrange(60), random.randrange(60), fraction)
                return made, trimmed(made.isoformat())
            case "timestamp-millis" | "timestamp-micros":
                made = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds, microseconds=fraction)
                return made, trimmed(made.replace(tzinfo=None).isoformat()) + "Z"
            case "local-timestamp-millis" | "local-timestamp-micros":
                made = datetime(1970, 1, 1) + timedelta(seconds=seconds, microseconds=fraction)  # noqa: DTZ001
                return made, trimmed(made.isoformat())
            case "decimal":
                digits = random.choice([0, 1, -1, 10**9, -(10**18), random.randint(-(10**19), 10**19)])
                made = Decimal(digits).scaleb(-schema["scale"])
                return made, f"{made:.{schema['scale']}f}"
            case "uuid":
                made = UUID(int=random.getrandbits(128))
                return (made if kind == "string" else made.bytes), str(made)
        months, days, ms = (random.choice([0, 1, 2**32 - 1, 1500]) for _ in range(3))
        text = "P" + (f"{months}M" if months else "") + (f"{days}D" if days else "")
        if ms or text == "P":
            text += "T" + trimmed(f"{ms // 1000}.{ms % 1000:03}") + "S"
        return struct.pack("<III", months, days, ms), text


class Float(float):
    """A number of 32 bits: its JSON text is the shortest that gives it back."""


def trimmed(text):
    """Return a text without zeros at the end of its fraction."""
    return text.rstrip("0").rstrip(".") if "." in text else text
