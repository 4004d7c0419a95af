"""`penstock map`: shows the triples that a mapping makes from a sample message."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.errors import DataError
from penstock.mapping.encodings.registry_access import registry_access
from penstock.mapping.files.source_files import mapped_files
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.rml import compile_rml
from penstock.mapping.stream_mapping import StreamMapping

if TYPE_CHECKING:
    from penstock.mapping.encodings.registry_access import RegistryAccess
    from penstock.mapping.encodings.schema_registry import SchemaRegistry


def map_messages(
    mapping: Annotated[
        Path,
        typer.Option(
            help="RML in Turtle (.ttl), CONSTRUCT (.rq), or JSON: the `mapping` of a declaration, or a document with "
            "an @context."
        ),
    ],
    message: Annotated[
        Path | None, typer.Argument(help="File with a message. Without it, the message is read from standard input.")
    ] = None,
    input_format: Annotated[
        str | None, typer.Option(help="Format of the message: json, ndjson, csv, avro or protobuf.")
    ] = None,
    schema: Annotated[
        Path | None, typer.Option(help="File with the schema of a message in Avro, or in Protobuf (.proto).")
    ] = None,
    message_type: Annotated[
        str | None, typer.Option(help="Message type in the .proto file. Default: the first one.")
    ] = None,
    schema_registry: Annotated[
        str | None, typer.Option(help="URL of the schema registry for a message in Avro or Protobuf with a schema id.")
    ] = None,
    schema_registry_credentials: Annotated[
        Path | None, typer.Option(help="File with USER:PASSWORD, or with a bearer token, for the registry.")
    ] = None,
    schema_registry_ca: Annotated[
        Path | None, typer.Option(help="CA (PEM) of the registry; default: the system's.")
    ] = None,
    base: Annotated[str | None, typer.Option(help="Base IRI for relative IRIs of the data.")] = None,
    key: Annotated[str | None, typer.Option(help="Key of the message.")] = None,
    header: Annotated[list[str] | None, typer.Option(help="A header of the message, as NAME=VALUE.")] = None,
    timestamp: Annotated[int | None, typer.Option(help="Time of the message in ms. Default: now.")] = None,
    files: Annotated[
        bool, typer.Option("--files", help="Map the files that the mapping names, not a message. Output: N-Quads.")
    ] = False,
) -> None:
    """Show the triples that a mapping makes of a message, with the time of each event."""
    if files:
        text = mapping.read_text(encoding="utf-8")
        sys.stdout.write(mapped_files(compile_rml(text, base), mapping.parent).decode())
        return
    settings = mapping_settings(mapping)
    settings |= {name: value for name, value in (("format", input_format), ("base", base)) if value is not None}
    if schema is not None:
        encoding = "protobuf" if schema.suffix == ".proto" else "avro"
        settings |= {"format": encoding, "schema": schema.read_text(encoding="utf-8")}
    if message_type is not None:
        settings |= {"message": message_type}
    compiled = StreamMapping(settings)
    access = registry_access(schema_registry, schema_registry_credentials, schema_registry_ca)
    registry = None if access is None else _registry(access)
    data = sys.stdin.buffer.read() if message is None else message.read_bytes()
    time_ms = int(datetime.now(UTC).timestamp() * 1000) if timestamp is None else timestamp
    headers = dict(_header(each) for each in header or ())
    given = SourceMessage(data, time_ms, None if key is None else key.encode(), headers)
    for event in compiled.events(compiled.decoded(given, registry)):
        print(f"# event at {event.time_ms}")
        sys.stdout.write(event.triples.decode())


def _registry(access: RegistryAccess) -> SchemaRegistry:
    from penstock.mapping.encodings.schema_registry import SchemaRegistry  # noqa: PLC0415 - its libraries take 0.3 s

    return SchemaRegistry(access)


def mapping_settings(path: Path) -> dict[str, Any]:
    """Return the settings of a mapping (`StreamMapping`) in a file. The file name says what the file contains."""
    text = path.read_text(encoding="utf-8")
    if path.suffix.lower() in (".rq", ".sparql"):
        return {"construct": text}
    if path.suffix.lower() not in (".json", ".jsonld"):
        return {"rml": text}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
    if isinstance(found, dict) and "@context" in found:
        return {"context": found["@context"]}
    if not isinstance(found, dict):
        raise DataError(f"{path}: it is neither a mapping nor a JSON-LD context")
    return found


def _header(given: str) -> tuple[str, bytes]:
    name, equals, value = given.partition("=")
    if not equals:
        raise DataError(f"a header is NAME=VALUE, not {given!r}")
    return name.lower(), value.encode()
