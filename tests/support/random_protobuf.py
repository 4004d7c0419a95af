"""Random schemas and messages of Protobuf, and the JSON values that a mapping reads for these messages."""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from datetime import UTC, datetime, timedelta

from google.protobuf import duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from support.random_avro import TEXTS, Float, trimmed

KNOWN = (timestamp_pb2, duration_pb2, wrappers_pb2, struct_pb2)
TIMES = ("Timestamp", "Duration")
SCALARS = [*range(1, 10), 12, 13, *range(15, 19)]
KEYS = [3, 4, 5, 6, 7, 8, 9, 13, 15, 16, 17, 18]
WRAPPED = (
    "Timestamp",
    "Duration",
    "Int64Value",
    "DoubleValue",
    "StringValue",
    "BoolValue",
    "BytesValue",
    "Value",
    "Struct",
)
WITHOUT_MAPS = tuple(name for name in WRAPPED if name not in ("Value", "Struct"))


class RandomProtobuf:
    """A schema. `random`: the source of its types and messages. `files`: the files, as protoc describes them."""

    def __init__(self, random, *, maps=True):
        self.random = random
        self.maps = maps
        self.is_proto3 = random.random() < 0.6
        self.file = FileDescriptorProto(name="m.proto", package="p", syntax="proto3" if self.is_proto3 else "proto2")
        self.file.dependency.extend(module.DESCRIPTOR.name for module in KNOWN)
        self.enum = self.file.enum_type.add(name="E")
        for number, name in ((0, "ZERO"), (1, "ONE"), (-5, "MINUS")):
            self.enum.value.add(name=name, number=number)
        for i in range(random.randint(1, 4)):
            self.file.message_type.add(name=f"M{i}")
        for message in self.file.message_type:
            self._fields(message)
        self.files = []
        for module in KNOWN:
            described = FileDescriptorProto()
            module.DESCRIPTOR.CopyToProto(described)
            self.files.append(described)
        self.files.append(self.file)
        pool = DescriptorPool()
        for each in self.files:
            pool.Add(each)
        self.type = GetMessageClass(pool.FindMessageTypeByName("p.M0"))

    def _fields(self, message):
        random = self.random
        numbers = random.sample([*range(1, 12), 1000, 2**29 - 1], random.randint(0 if message.name != "M0" else 2, 9))
        oneof = message.oneof_decl.add(name="o") if len(numbers) > 4 and random.random() < 0.5 else None
        optional = []
        for i, number in enumerate(numbers):
            field = message.field.add(name=f"f{i}", number=number, label=Field.LABEL_OPTIONAL)
            if oneof is not None and i < 3:
                self._type(field, message)
                field.oneof_index = 0
                continue
            kind = random.randrange(8)
            if kind == 0 and self.maps:
                self._map(message, field)
                continue
            if kind <= 2:
                field.label = Field.LABEL_REPEATED
            self._type(field, message)
            scalar = field.type not in (Field.TYPE_MESSAGE, Field.TYPE_GROUP)
            if kind <= 2 and scalar and field.type not in (Field.TYPE_STRING, Field.TYPE_BYTES):
                field.options.packed = random.random() < 0.5
            if kind > 5 and self.is_proto3 and scalar:
                field.proto3_optional = True
                optional.append(field)
        for field in optional:
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field.name}")

    def _type(self, field, message):
        choice = self.random.randrange(8)
        if choice < 5:
            field.type = self.random.choice(SCALARS)
        elif choice == 5:
            field.type, field.type_name = Field.TYPE_ENUM, ".p.E"
        elif choice == 6:
            field.type = Field.TYPE_MESSAGE
            field.type_name = f".google.protobuf.{self.random.choice(WRAPPED if self.maps else WITHOUT_MAPS)}"
        elif not self.is_proto3 and self.random.random() < 0.3:
            group = message.nested_type.add(name=f"G{field.number}")
            group.field.add(name="in", number=1, label=Field.LABEL_OPTIONAL, type=Field.TYPE_INT32)
            field.type, field.type_name, field.name = (
                Field.TYPE_GROUP,
                f".p.{message.name}.{group.name}",
                group.name.lower(),
            )
        else:
            field.type = Field.TYPE_MESSAGE
            field.type_name = f".p.{self.random.choice(self.file.message_type).name}"

    def _map(self, message, field):
        entry = message.nested_type.add(name=f"F{field.name[1:]}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=Field.LABEL_OPTIONAL, type=self.random.choice(KEYS))
        value = entry.field.add(name="value", number=2, label=Field.LABEL_OPTIONAL)
        self._type(value, entry)
        while value.type == Field.TYPE_GROUP:
            del entry.nested_type[:]
            value.ClearField("type_name")
            value.name = "value"
            self._type(value, entry)
        field.label, field.type = Field.LABEL_REPEATED, Field.TYPE_MESSAGE
        field.type_name = f".p.{message.name}.{entry.name}"

    # ---- messages
    def message(self):
        made = self.type()
        self.fill(made, 0)
        return made

    def fill(self, message, depth):
        random = self.random
        name = message.DESCRIPTOR.full_name
        if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
            sign = random.choice([1, -1]) if name.endswith("Duration") else 1
            message.seconds = sign * random.choice([0, 1, random.randint(0, 4 * 10**9)])
            message.nanos = sign * random.choice([0, 1, 120_000_000, 999_999_999])
            return
        for field in message.DESCRIPTOR.fields:
            if random.random() < 0.3 or (depth > 4 and field.type in (Field.TYPE_MESSAGE, Field.TYPE_GROUP)):
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                value = field.message_type.fields_by_name["value"]
                there = getattr(message, field.name)
                for _ in range(random.randint(0, 3)):
                    key = self.value(field.message_type.fields_by_name["key"])
                    if value.message_type is not None:
                        self.fill(there[key], depth + 1)
                    else:
                        there[key] = self.value(value)
            elif field.is_repeated:
                there = getattr(message, field.name)
                for _ in range(random.randint(0, 3)):
                    if field.message_type is not None:
                        self.fill(there.add(), depth + 1)
                    else:
                        there.append(self.value(field))
            elif field.message_type is not None:
                there = getattr(message, field.name)
                there.SetInParent()
                self.fill(there, depth + 1)
            else:
                setattr(message, field.name, self.value(field))

    def value(self, field):
        random = self.random
        match field.type:
            case FieldDescriptor.TYPE_BOOL:
                return random.random() < 0.5
            case FieldDescriptor.TYPE_STRING:
                return random.choice(TEXTS)
            case FieldDescriptor.TYPE_BYTES:
                return random.randbytes(random.randint(0, 8))
            case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
                return random.choice([0.0, -0.0, 1.5, math.inf, -math.inf, math.nan, random.gauss(0, 1e3), 1e-7])
            case FieldDescriptor.TYPE_ENUM:
                numbers = [value.number for value in field.enum_type.values]
                return random.choice([*numbers, 77] if not field.enum_type.is_closed else numbers)
        size = 64 if field.type in (3, 4, 6, 16, 18) else 32
        low, high = (0, 2**size - 1) if field.type in (4, 6, 7, 13) else (-(2 ** (size - 1)), 2 ** (size - 1) - 1)
        return random.choice([0, 1, low, high, random.randint(low, high)])


def expected(message):
    """Return the JSON value that a mapping reads for a message, by Python's own Protobuf."""
    name = message.DESCRIPTOR.full_name.removeprefix("google.protobuf.")
    if name == "Timestamp":
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=message.seconds)
        return trimmed(f"{at.replace(tzinfo=None).isoformat()}.{message.nanos:09}") + "Z"
    if name == "Duration":
        sign = "-" if message.seconds < 0 or message.nanos < 0 else ""
        return f"{sign}PT" + trimmed(f"{abs(message.seconds)}.{abs(message.nanos):09}") + "S"
    found = {}
    for field in message.DESCRIPTOR.fields:
        there = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            value = field.message_type.fields_by_name["value"]
            if there or name == "Struct":
                found[field.name] = {_key(key): _value(value, each) for key, each in there.items()}
        elif field.is_repeated:
            if there or name == "ListValue":
                found[field.name] = [_value(field, each) for each in there]
        elif not field.has_presence or message.HasField(field.name):
            found[field.name] = _value(field, there)
    if name in ("Struct", "Value", "ListValue") or name.endswith("Value"):
        return next(iter(found.values()), None)
    return found


def _key(key):
    return str(key).lower() if isinstance(key, bool) else str(key)


def _value(field, value):
    if field.message_type is not None:
        return expected(value)
    if field.enum_type is not None:
        if field.enum_type.full_name == "google.protobuf.NullValue" and value == 0:
            return None
        named = field.enum_type.values_by_number.get(value)
        return value if named is None else named.name
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        if math.isinf(value):
            return "INF" if value > 0 else "-INF"
        return Float(value) if field.type == FieldDescriptor.TYPE_FLOAT else value
    return value


def same(found, value):
    """Return whether a decoded JSON value is the expected one."""
    if isinstance(value, Float):
        return isinstance(found, float) and struct.pack("f", found) == struct.pack("f", value)
    if isinstance(value, dict):
        return (
            isinstance(found, dict)
            and found.keys() == value.keys()
            and all(same(found[k], v) for k, v in value.items())
        )
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(same, found, value))
    return type(found) is type(value) and str(found) == str(value)
