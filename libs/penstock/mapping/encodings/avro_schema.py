"""Compiles Avro schemas (Avro 1.12, "Schema Declaration") for the native decoder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from fastavro.schema import parse_schema

from penstock.core._native import AvroSchema
from penstock.errors import DataError
from penstock.rdf.checks import JsonDepth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.mapping.mapping_limits import MappingLimits

_PRIMITIVE: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_LOGICAL: Final = {
    "int": frozenset({"date", "time-millis"}),
    "long": frozenset(
        {
            "time-micros",
            "timestamp-millis",
            "timestamp-micros",
            "timestamp-nanos",
            "local-timestamp-millis",
            "local-timestamp-micros",
            "local-timestamp-nanos",
        }
    ),
}
_MAX_SCALE: Final = 1_000
_MAX_FIXED: Final = 1 << 30


def compile_avro(schema: Any, limits: MappingLimits, references: Iterable[str] = ()) -> AvroSchema:
    """Return the decoder of data in Avro. `schema`: the schema of the data, as a JSON text or as the value of this
    text. `references`: JSON texts of other schemas that define named types for `schema`. A schema comes after the other
    schemas that it uses. DataError if a schema is invalid, too large (`max_schema_bytes`) or nested too deeply.
    DataError also if it has too many types (`max_schema_types`).
    """
    named: dict[str, Any] = {}
    try:
        for text in references:
            _parsed(text, named, limits)
        compiler = _Compiler(named, limits)
        compiler.number(_parsed(schema, named, limits))
    except DataError:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise DataError(f"the Avro schema is invalid: {reason[:200]}") from error
    return AvroSchema(compiler.types)


def _parsed(schema: Any, named: dict[str, Any], limits: MappingLimits) -> Any:
    """Return a schema in which all names are full names, and add its named types to `named`. Default values are not
    checked, because the decoder never uses default values.
    """
    return parse_schema(_value(schema, limits), named, _write_hint=False, _force=True, _ignore_default_error=True)


def _value(schema: Any, limits: MappingLimits) -> Any:
    try:
        text = schema if isinstance(schema, str) else json.dumps(schema)
        data = text.encode()
        if len(data) > limits.max_schema_bytes:
            raise DataError(f"an Avro schema of {len(data)} bytes exceeds max_schema_bytes ({limits.max_schema_bytes})")
        JsonDepth(limits.max_json_depth).feed(data)
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # UnicodeEncodeError is a ValueError
        raise DataError(f"the Avro schema is not JSON: {error}") from error


class _Compiler:
    """Collects the types of a schema. `types`: the types in the form that `AvroSchema` takes."""

    def __init__(self, named: dict[str, Any], limits: MappingLimits) -> None:
        self._named = named
        self._limits = limits
        self._numbers: dict[str, int] = {}
        self.types: list[dict[str, Any]] = []

    def number(self, schema: Any) -> int:
        """Return the number of the type of a parsed schema."""
        if isinstance(schema, list):
            if any(isinstance(each, list) for each in schema):
                raise DataError("the Avro schema is invalid: a union contains a union")
            branches = self._new({"kind": "union"})
            self.types[branches]["types"] = [self.number(each) for each in schema]
            return branches
        if isinstance(schema, str):
            return self._primitive(schema) if schema in _PRIMITIVE else self._of_name(schema)
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.number(kind)
        if kind in ("record", "error", "enum", "fixed"):
            return self._of_name(schema["name"])
        if kind in ("array", "map"):
            made = self._new({"kind": kind})
            self.types[made]["types"] = [self.number(schema["items" if kind == "array" else "values"])]
            return made
        if kind in _PRIMITIVE:
            return self._logical(schema, kind)
        return self._of_name(kind)

    def _of_name(self, name: str) -> int:
        if name not in self._numbers:
            schema = self._named.get(name)
            if schema is None:
                raise DataError(f"the Avro schema is invalid: it has no type {name!r}")
            self._define(name, schema)
        return self._numbers[name]

    def _define(self, name: str, schema: dict[str, Any]) -> None:
        kind = schema["type"]
        if kind == "fixed":
            self._numbers[name] = self._new(self._fixed(name, schema))
        elif kind == "enum":
            self._numbers[name] = self._new({"kind": "enum", "names": list(schema["symbols"])})
        else:
            made = self._numbers[name] = self._new({"kind": "record"})
            fields = schema["fields"]
            self.types[made]["names"] = [field["name"] for field in fields]
            self.types[made]["types"] = [self.number(field["type"]) for field in fields]

    def _fixed(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        size, logical = schema["size"], schema.get("logicalType")
        if type(size) is not int or not 0 <= size <= _MAX_FIXED:
            raise DataError(f"the Avro schema is invalid: the size of {name} is {size!r}")
        if logical == "decimal":
            return {"kind": "fixed-decimal", "size": size, "scale": _scale(schema)}
        if logical == "uuid" and size == 16:
            return {"kind": "fixed-uuid", "size": size}
        if logical == "duration" and size == 12:
            return {"kind": "duration", "size": size}
        return {"kind": "fixed", "size": size}

    def _logical(self, schema: dict[str, Any], kind: str) -> int:
        """Return the number of a type with a logical type. `kind`: the primitive type. As Avro prescribes, a logical
        type is ignored if it is unknown or does not apply to this primitive type.
        """
        logical = schema.get("logicalType")
        if kind == "bytes" and logical == "decimal":
            return self._new({"kind": "decimal", "scale": _scale(schema)})
        if isinstance(logical, str) and logical in _LOGICAL.get(kind, ()):
            return self._primitive(logical)
        return self._primitive(kind)

    def _primitive(self, kind: str) -> int:
        if kind not in self._numbers:  # no schema has such a name: Avro reserves the names of primitive types
            self._numbers[kind] = self._new({"kind": kind})
        return self._numbers[kind]

    def _new(self, made: dict[str, Any]) -> int:
        if len(self.types) >= self._limits.max_schema_types:
            raise DataError(f"an Avro schema of more than {self._limits.max_schema_types} types (max_schema_types)")
        self.types.append(made)
        return len(self.types) - 1


def _scale(schema: dict[str, Any]) -> int:
    scale = schema.get("scale", 0)
    if type(scale) is not int or not 0 <= scale <= _MAX_SCALE:
        raise DataError(f"the Avro schema is invalid: the scale of a decimal is 0 to {_MAX_SCALE}, not {scale!r}")
    return scale
