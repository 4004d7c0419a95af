"""Compiles the text of a Protocol Buffers schema (a .proto file) for the native decoder.

The compiler protoc parses the text, in a separate process.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from penstock.core._native import ProtobufSchema
from penstock.errors import DataError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

    from penstock.mapping.mapping_limits import MappingLimits

_MAIN: Final = "penstock-message.proto"
_PARSING_S: Final = 20.0
_KINDS: Final = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    6: "fixed64",
    7: "fixed32",
    8: "bool",
    9: "string",
    10: "group",
    11: "message",
    12: "bytes",
    13: "uint32",
    14: "enum",
    15: "sfixed32",
    16: "sfixed64",
    17: "sint32",
    18: "sint64",
}
"""The kinds of `FieldDescriptorProto.Type`."""
_MESSAGES: Final = frozenset({"group", "message"})
_REPEATED: Final = 3
_GOOGLE: Final = ".google.protobuf."
_TIMES: Final = {_GOOGLE + "Timestamp": "timestamp", _GOOGLE + "Duration": "duration"}
_TRANSPARENT: Final = frozenset(
    _GOOGLE + name
    for name in (
        "DoubleValue",
        "FloatValue",
        "Int64Value",
        "UInt64Value",
        "Int32Value",
        "UInt32Value",
        "BoolValue",
        "StringValue",
        "BytesValue",
        "Struct",
        "Value",
        "ListValue",
    )
)
_NULL: Final = _GOOGLE + "NullValue"


@dataclass(frozen=True, slots=True)
class ProtobufFile:
    """The message types of a .proto file.

    by_index: the number of each type in `schema`, by the place of the type in the file. The place of a nested type is
    the place of the outer type, followed by the index in the outer type. by_name: the number of each type in `schema`,
    by the full name of the type.
    """

    schema: ProtobufSchema
    by_index: Mapping[tuple[int, ...], int]
    by_name: Mapping[str, int]


def compile_protobuf(text: str, limits: MappingLimits, references: Iterable[tuple[str, str]] = ()) -> ProtobufFile:
    """Return the decoders of the message types in `text`, a .proto file. `references`: the name and the text of each
    file that `text` imports, directly or indirectly. Google's well-known types can be imported without a reference.

    DataError if a file is invalid or too large (`max_schema_bytes`), if there are too many types (`max_schema_types`),
    if a file uses editions, or if the package grpcio-tools is not installed. UnavailableError if protoc cannot be
    started, or if the temporary folder for protoc cannot be used.
    """
    return compile_files(_parsed(dict(references) | {_MAIN: text}, limits), limits)


def compile_files(files: Sequence[FileDescriptorProto], limits: MappingLimits) -> ProtobufFile:
    """Return the decoders of the message types in the last file. `files`: all files that this last file imports,
    directly or indirectly, and then the last file. For errors, see `compile_protobuf`.
    """
    compiler = _Compiler(files, limits)
    main = files[-1]
    prefix = f".{main.package}" if main.package else ""
    by_index: dict[tuple[int, ...], int] = {}
    by_name: dict[str, int] = {}

    def walk(messages: Iterable[DescriptorProto], outer: str, path: tuple[int, ...]) -> None:
        for place, message in enumerate(messages):
            name = f"{outer}.{message.name}"
            by_index[*path, place] = by_name[name[1:]] = compiler.number(name)
            walk(message.nested_type, name, (*path, place))

    walk(main.message_type, prefix, ())
    compiler.finish()
    if not by_index:
        raise DataError("the Protobuf schema has no message type")
    return ProtobufFile(ProtobufSchema(compiler.types), by_index, by_name)


def _parsed(texts: Mapping[str, str], limits: MappingLimits) -> list[FileDescriptorProto]:
    if importlib.util.find_spec("grpc_tools") is None:
        raise DataError("messages in Protobuf need the package grpcio-tools: pip install 'penstock[protobuf]'")
    try:
        return _by_protoc(texts, limits)
    except OSError as error:
        raise UnavailableError(f"the Protobuf schema cannot be read: protoc: {error}") from error


def _by_protoc(texts: Mapping[str, str], limits: MappingLimits) -> list[FileDescriptorProto]:
    from google.protobuf.descriptor_pb2 import FileDescriptorSet  # noqa: PLC0415 - of an extra

    with tempfile.TemporaryDirectory(prefix="penstock-protobuf-") as folder:
        for name, text in texts.items():
            _write(Path(folder), name, text, limits)
        out = Path(folder, "descriptors")
        command = [sys.executable, "-I", "-m", "grpc_tools.protoc", f"-I{folder}", "--include_imports"]
        command += [f"--descriptor_set_out={out}", _MAIN]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_PARSING_S, check=False)  # noqa: S603
        except subprocess.TimeoutExpired:
            raise DataError(f"protoc did not read the Protobuf schema within {_PARSING_S:g} s") from None
        if done.returncode != 0:
            raise DataError(f"the Protobuf schema is invalid: {_reason(done.stderr, folder)}")
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def _reason(output: bytes, folder: str) -> str:
    """Return the errors in protoc's output, without its log lines and without the names of the folder and of the main
    file. An error begins with the line and the column.
    """
    lines = output.decode("utf-8", "replace").splitlines()
    errors = [line for line in lines if not line.startswith(("WARNING: ", "W0000 ", "I0000 ", "E0000 "))]
    return "; ".join(errors).replace(folder + "/", "").replace(_MAIN + ":", "")[:300]


def _write(folder: Path, name: str, text: str, limits: MappingLimits) -> None:
    path = PurePosixPath(name)
    if not name.isprintable() or path.is_absolute() or ".." in path.parts or not path.parts or len(name) > 200:
        raise DataError(f"a Protobuf schema cannot be imported as {name!r:.60}")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the Protobuf schema is not UTF-8: {error}") from error
    if len(data) > limits.max_schema_bytes:
        raise DataError(f"a Protobuf schema of {len(data)} bytes exceeds max_schema_bytes ({limits.max_schema_bytes})")
    file = folder / path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    except OSError as error:
        raise DataError(f"a Protobuf schema cannot be imported as {name!r:.60}: {error.strerror}") from error


class _Compiler:
    """Collects the types of files. `types`: the types in the form that `ProtobufSchema` takes."""

    def __init__(self, files: Iterable[FileDescriptorProto], limits: MappingLimits) -> None:
        self._limits = limits
        self._messages: dict[str, tuple[DescriptorProto, bool]] = {}
        self._enums: dict[str, tuple[EnumDescriptorProto, bool]] = {}
        self._numbers: dict[str, int] = {}
        self._open: list[str] = []
        self.types: list[dict[str, Any]] = []
        for file in files:
            if file.syntax not in ("", "proto2", "proto3"):
                raise DataError(f"the Protobuf schema uses {file.syntax}; `syntax` is proto2 or proto3")
            prefix = f".{file.package}" if file.package else ""
            self._collect(file.message_type, file.enum_type, prefix, file.syntax == "proto3")

    def _collect(
        self, messages: Iterable[DescriptorProto], enums: Iterable[EnumDescriptorProto], outer: str, is_proto3: bool
    ) -> None:
        for enum in enums:
            self._enums[f"{outer}.{enum.name}"] = enum, is_proto3
        for message in messages:
            name = f"{outer}.{message.name}"
            self._messages[name] = message, is_proto3
            self._collect(message.nested_type, message.enum_type, name, is_proto3)

    def number(self, name: str) -> int:
        """Return the number of a type. `name`: the full name of the type, after a dot."""
        if name not in self._numbers:
            if len(self.types) >= self._limits.max_schema_types:
                most = self._limits.max_schema_types
                raise DataError(f"a Protobuf schema of more than {most} types (max_schema_types)")
            self._numbers[name] = len(self.types)
            self.types.append({})
            self._open.append(name)
        return self._numbers[name]

    def finish(self) -> None:
        """Complete the types that have numbers. The fields of a type can give numbers to further types, which are also
        completed.
        """
        while self._open:
            name = self._open.pop()
            self.types[self._numbers[name]] = self._enum(name) if name in self._enums else self._message(name)

    def _enum(self, name: str) -> dict[str, Any]:
        enum, is_proto3 = self._enums[name]
        values = [
            {"number": value.number & 0xFFFFFFFF, "text": "null" if name == _NULL else json.dumps(value.name)}
            for value in enum.value
        ]
        return {"kind": "enum", "closed": not is_proto3, "values": values}

    def _message(self, name: str) -> dict[str, Any]:
        message, is_proto3 = self._messages[name]
        kind = "transparent" if name in _TRANSPARENT else _TIMES.get(name, "message")
        fields = [self._field(field, is_proto3) for field in message.field]
        return {"kind": kind, "oneofs": len(message.oneof_decl), "fields": fields}

    def _field(self, field: FieldDescriptorProto, is_proto3: bool) -> dict[str, Any]:
        kind = _KINDS[field.type]
        is_repeated = field.label == _REPEATED
        in_oneof = field.HasField("oneof_index") and not field.proto3_optional
        is_implicit = is_proto3 and not (is_repeated or in_oneof or field.proto3_optional or kind in _MESSAGES)
        made: dict[str, Any] = {
            "kind": kind,
            "number": field.number,
            "name": field.name,
            "repeated": is_repeated,
            "map": kind == "message" and self._messages[field.type_name][0].options.map_entry,
            "implicit": is_implicit,
        }
        if kind == "enum" or kind in _MESSAGES:
            made["type"] = self.number(field.type_name)
        if in_oneof:
            made["oneof"] = field.oneof_index
        return made
