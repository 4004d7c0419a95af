"""The mapping in a stream's declaration. It maps a message to events."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from penstock.errors import DataError
from penstock.mapping.construct import compile_construct
from penstock.mapping.event_times import EventTimes
from penstock.mapping.executor import Executor
from penstock.mapping.json_ld_context import ContextMapping
from penstock.mapping.json_path import Path, all_values, parse_path
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits
from penstock.mapping.message_records import SourceMessage, csv_rows, json_lines, json_value
from penstock.mapping.native_program import native_program
from penstock.mapping.rml import compile_rml
from penstock.rdf.terms import check_iri

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.core._native import MappedBatch, MappingProgram
    from penstock.mapping.encodings.avro_messages import AvroMessages
    from penstock.mapping.encodings.protobuf_messages import ProtobufMessages
    from penstock.mapping.encodings.schema_registry import SchemaRegistry
    from penstock.mapping.program import Program

FORMATS: Final = ("json", "ndjson", "csv", "avro", "protobuf")
_ENCODED: Final = ("avro", "protobuf")
MEDIA_TYPES: Final = {
    "application/json": "json",
    "text/json": "json",
    "application/x-ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "text/csv": "csv",
    "application/avro": "avro",
    "application/vnd.apache.avro": "avro",
    "avro/binary": "avro",
    "application/protobuf": "protobuf",
    "application/x-protobuf": "protobuf",
    "application/vnd.google.protobuf": "protobuf",
}
_SETTINGS: Final = frozenset({"rml", "construct", "context", "format", "schema", "message", "base", "events", "time"})


class MappedEvent(NamedTuple):
    """An event of a message: its time in ms and its triples as N-Triples."""

    time_ms: int
    triples: bytes


class StreamMapping:
    """A compiled mapping. `settings`: the settings of the mapping in the declaration of a stream, as follows.

    Exactly one of `rml`, `construct` and `context` is required.

    - `rml`: an RML mapping in Turtle.
    - `construct`: a CONSTRUCT query whose expressions refer to the message.
    - `context`: a JSON-LD context for JSON messages without a context.
    - `format`: the format of the messages, "json" (default), "ndjson", "csv", "avro" or "protobuf".
    - `schema`: the schema of messages in Avro, as a JSON value or as text, or the text of a .proto file. Without this
      setting, each message contains the id of its schema in a registry.
    - `message`: the message type in the .proto file, by its full name. By default, it is the first type.
    - `base`: the IRI for relative IRIs.
    - `events`: JSONPath of the events in a message. By default, a JSON message is one event. Each line of NDJSON is an
      event, and so is each row of CSV. A message in Avro or Protobuf is read as JSON.
    - `time`: the rule for event times, see `EventTimes`.

    `of_file`: whether the mapping is for files (`FileMapping`). Records of files need no time, and records without
    triples are skipped.

    DataError, with the name of the setting, if a setting is invalid.
    """

    def __init__(
        self, settings: dict[str, Any], limits: MappingLimits = MAPPING_LIMITS, *, of_file: bool = False
    ) -> None:
        if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
            raise DataError(f"mapping: it is an object with settings, not {settings!r:.60}")
        if unknown := sorted(set(settings) - _SETTINGS):
            raise DataError(f"mapping: unknown settings {', '.join(unknown)}; known are {', '.join(sorted(_SETTINGS))}")
        if sum(name in settings for name in ("rml", "construct", "context")) != 1:
            raise DataError("mapping: it needs one of `rml`, `construct` and `context`")
        self.format: str = settings.get("format", "json")
        if self.format not in FORMATS:
            raise DataError(f"mapping: `format` is one of {', '.join(FORMATS)}, not {self.format!r}")
        for name in ("base", "events", "rml", "construct"):
            if name in settings and not isinstance(settings[name], str):
                raise DataError(f"mapping: `{name}` is a text, not {settings[name]!r:.60}")
        if self.format not in ("json", *_ENCODED) and "events" in settings:
            raise DataError(f"mapping: `events` is for JSON messages; `format` is {self.format!r}")
        if self.format not in _ENCODED and "schema" in settings:
            raise DataError(f"mapping: `schema` is for messages in Avro or Protobuf; `format` is {self.format!r}")
        if self.format == "protobuf" and not all(
            isinstance(settings.get(name, ""), str) for name in ("schema", "message")
        ):
            raise DataError("mapping: `schema` and `message` of messages in Protobuf are texts")
        if "message" in settings and (self.format != "protobuf" or "schema" not in settings):
            raise DataError("mapping: `message` names a message type of `schema`, for messages in Protobuf")
        self._limits = limits
        self._of_file = of_file
        self._encoding = _encoding(settings, limits) if self.format in _ENCODED else None
        self._native: MappingProgram | None = None
        self._times = EventTimes(settings.get("time"), rows=self.format == "csv")
        self._events: Path = parse_path(settings["events"]) if "events" in settings else ()
        self._find_events = all_values(self._events, limits.max_values)
        base = check_iri(settings["base"]) if "base" in settings else None
        if "rml" in settings:
            self._triples = self._of_program(compile_rml(settings["rml"], base, limits))
        elif "construct" in settings:
            formulation: Literal["json", "csv"] = "csv" if self.format == "csv" else "json"
            self._triples = self._of_program(compile_construct(settings["construct"], base, formulation, limits))
        elif self.format == "csv":
            raise DataError("mapping: a JSON-LD `context` maps JSON; CSV needs `rml` or `construct`")
        else:
            self._triples = ContextMapping(settings["context"], base, limits).triples

    @property
    def is_encoded(self) -> bool:
        """Whether messages are in a binary format. `json_texts` and `decoded` decode such messages. The other methods
        take the decoded texts.
        """
        return self._encoding is not None

    def json_texts(self, messages: Sequence[bytes], registry: SchemaRegistry | None) -> list[bytes | str]:
        """Return the JSON text in UTF-8 of each message in a binary format. For a message that cannot be decoded,
        return the reason as a `str`. `registry`: the registry of the schemas. None: there is no registry.
        UnavailableError if the registry is unavailable.
        """
        assert self._encoding is not None, "only messages in a binary format are decoded"
        return self._encoding.json_texts(messages, registry)

    def decoded(self, message: SourceMessage, registry: SchemaRegistry | None) -> SourceMessage:
        """Return a message whose value is JSON if the messages are in a binary format. Otherwise, return the message
        unchanged. DataError if the message cannot be decoded. UnavailableError if the registry is unavailable.
        """
        if self._encoding is None:
            return message
        [text] = self._encoding.json_texts([message.value], registry)
        if isinstance(text, str):
            raise DataError(text)
        return message._replace(value=text)

    def batch(self, messages: Sequence[tuple[object, object]], max_bytes: int) -> MappedBatch | None:
        """Map messages with the native executor and return their events. `messages`: the timestamp and the text of each
        message. None if the native executor does not support the mapping. The native executor declines some messages,
        for example messages of more than `max_bytes`. The caller must pass the declined messages to `events`.
        """
        return None if self._native is None else self._native.map(messages, max_bytes)

    def events(self, message: SourceMessage) -> list[MappedEvent]:
        """Return the events of a message. DataError if an event cannot be made. The error contains the path, the term
        map or the limit, and the message is rejected as a whole.
        """
        made = self.batch([(message.timestamp_ms, message.value)], len(message.value))
        if made is None or made.declined:
            return self.interpreted(message)
        return [MappedEvent(time, made.ntriples(i)) for i, time in enumerate(made.times.tolist())]

    def interpreted(self, message: SourceMessage) -> list[MappedEvent]:
        """Return the events of a message like `events`, but without the native executor."""
        records = self._records(message.value)
        if not records:
            raise DataError("the message has no event")
        share = len(message.value) // max(1, len(records)) + 1
        made = []
        for number, record in enumerate(records):
            try:
                made.append(MappedEvent(self._times.of(record, message), self._nonempty(record, message, share)))
            except DataError as error:
                if len(records) == 1:
                    raise
                raise DataError(f"event {number + 1} of {len(records)}: {error}") from error
        return made

    def of_records(self, text: bytes, scope: str = "", lines_before: int = 0) -> list[bytes]:
        """Return the triples of each record of a text from a file, without the native executor. Records without triples
        are left out. `scope`: part of the labels of new blank nodes. `lines_before`: number of lines before the text,
        for errors. DataError, with the line or the number of the record, if a record cannot be mapped.
        """
        records = self._records(text, lines_before)
        share = len(text) // max(1, len(records)) + 1
        made = []
        for number, record in enumerate(records):
            try:
                made.append(self._triples(record, SourceMessage(b""), share, f"{scope}{number}_"))
            except DataError as error:
                if len(records) == 1 and not lines_before:
                    raise
                after = f" after line {lines_before}" if lines_before else ""
                raise DataError(f"record {number + 1}{after}: {error}") from error
        return [triples for triples in made if triples]

    def _nonempty(self, record: Any, message: SourceMessage, size: int) -> bytes:
        triples = self._triples(record, message, size, "")
        if not triples:
            raise DataError("no triple: no subject of the mapping has a value in the message")
        return triples

    def _records(self, data: bytes, lines_before: int = 0) -> list[Any]:
        if self.format == "csv":
            return csv_rows(data, self._nulls, self._limits, lines_before=lines_before)
        if self.format == "ndjson":
            return json_lines(data, self._limits, lines_before)
        value = json_value(data, self._limits)
        if not self._events:
            return [value]
        try:
            return self._find_events(value)
        except DataError as error:
            raise DataError(f"events: {error}") from error

    _nulls: tuple[str, ...] = ()

    def _of_program(self, program: Program) -> Callable[[Any, SourceMessage, int, str], bytes]:
        if program.names_graphs:
            raise DataError("mapping: a graph map: an event is a set of triples and cannot name graphs")
        native_format = "json" if self.format in _ENCODED else self.format
        formulation = "csv" if self.format == "csv" else "json"
        if any(rule.source.formulation != formulation for rule in program.rules):
            raise DataError(
                f"mapping: `format` is {self.format!r}, but a logical source has another rml:referenceFormulation"
            )
        sources = list(dict.fromkeys(rule.source for rule in program.rules))
        if len({source.location for source in sources}) > 1:
            raise DataError("mapping: it has several sources; the only source of a stream is its message")
        nulls = {source.nulls for source in sources}
        if len(nulls) > 1:
            raise DataError("mapping: its logical sources have different rml:null")
        (self._nulls,) = nulls
        self._native = native_program(
            program,
            native_format,
            self._events,
            self._times.reference,
            self._nulls,
            self._limits,
            of_file=self._of_file,
        )
        executor = Executor(program, self._limits)
        if formulation == "csv":
            return lambda row, *given: executor.text({source: [row] for source in sources}, *given)
        if len(sources) == 1:
            only = sources[0]
            return lambda value, *given: executor.text({only: value}, *given)
        return lambda value, *given: executor.text(dict.fromkeys(sources, value), *given)


def _encoding(settings: dict[str, Any], limits: MappingLimits) -> AvroMessages | ProtobufMessages:
    from penstock.mapping.encodings.avro_messages import AvroMessages  # noqa: PLC0415 - the library takes 0.1 s
    from penstock.mapping.encodings.protobuf_messages import ProtobufMessages  # noqa: PLC0415

    schema = settings.get("schema")
    try:
        if settings["format"] == "avro":
            return AvroMessages(schema, limits)
        return ProtobufMessages(schema, settings.get("message"), limits)
    except DataError as error:
        raise DataError(f"mapping: `schema`: {error}") from error


def is_mapped_format(name: str) -> bool:
    """Return whether mappings read a format or media type. They read JSON, NDJSON, CSV, Avro and Protobuf."""
    name = name.partition(";")[0].strip().lower()
    return name in FORMATS or name in MEDIA_TYPES


def mapped_media_type(name: str) -> str | None:
    """Return the media type of a format, given the format's name or media type. None if mappings do not read the
    format.
    """
    name = name.partition(";")[0].strip().lower()
    return next((media for media, known in MEDIA_TYPES.items() if name in (media, known)), None)


def mapped_format(mapping: StreamMapping | None, format: str | None) -> str | None:  # noqa: A002 - as in the API
    """Return the format in which a stream's mapping reads a message. None if the message is RDF, or if the stream has
    no mapping. `format`: the format that the caller gives, or None. DataError if mappings read this format, but the
    mapping of this stream does not.
    """
    if mapping is None or (format is not None and not is_mapped_format(format)):
        return None
    if format is not None:
        name = format.partition(";")[0].strip().lower()
        if MEDIA_TYPES.get(name, name) != mapping.format:
            raise DataError(f"the stream's mapping reads {mapping.format}, not {name}")
    return mapping.format


@lru_cache(maxsize=256)
def compiled_text(text: str) -> StreamMapping:
    """Return the compiled mapping for settings in JSON, from a cache. DataError if a setting is invalid."""
    return StreamMapping(json.loads(text))


def compiled(settings: dict[str, Any]) -> StreamMapping:
    """Return the compiled mapping of a declaration, from a cache. DataError if a setting is invalid."""
    try:
        return compiled_text(json.dumps(settings, sort_keys=True))
    except (TypeError, RecursionError) as error:
        raise DataError(f"mapping: its settings are JSON values: {error}") from error
    except ValueError as error:
        raise DataError(f"mapping: {error}") from error
