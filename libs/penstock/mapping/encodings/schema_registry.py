"""A client of a schema registry with Confluent's HTTP API. It looks up schemas by their ids, and registers schemas."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import httpx

from penstock.errors import DataError, StorageError, UnavailableError
from penstock.mapping.encodings.avro_schema import compile_avro
from penstock.mapping.encodings.protobuf_schema import ProtobufFile, compile_protobuf
from penstock.mapping.mapping_limits import MAPPING_LIMITS, MappingLimits

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.core._native import AvroSchema
    from penstock.mapping.encodings.registry_access import RegistryAccess

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_ACCEPT: Final = {"accept": f"{_MEDIA_TYPE}, application/json"}
_TIMEOUT_S: Final = 10.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 10.0
_REFUSED: Final = (httpx.codes.CONFLICT, httpx.codes.UNPROCESSABLE_ENTITY)
_MAX_ID: Final = (1 << 31) - 1
_UNUSABLE_S: Final = 60.0
"""Time in s during which an id without a usable schema is not requested again."""
_MAX_REFERENCES: Final = 100
_SHOWN: Final = 500  # characters of the registry's reason in a message
_NOT_FOUND: Final = frozenset({40401, 40402, 40403})  # no such subject, version, schema


class SchemaRegistry:
    """Returns the decoders of schema ids, from a cache of at most `max_schemas`. Thread-safe.

    StorageError if a file of `access` cannot be used. DataError if the URL is invalid.
    """

    def __init__(
        self,
        access: RegistryAccess,
        limits: MappingLimits = MAPPING_LIMITS,
        now: Callable[[], float] = time.monotonic,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url = _checked_url(access.url)
        self.name = f"the schema registry at {url.host}"
        self._limits, self._now = limits, now
        headers, user = _authorisation(access)
        self._http = httpx.Client(
            base_url=url,
            auth=user,
            headers=_ACCEPT | headers,
            timeout=_TIMEOUT_S,
            verify=_trusted(access),
            transport=transport,
        )
        self._lock = threading.Lock()
        self._schemas: OrderedDict[int, AvroSchema | ProtobufFile] = OrderedDict()
        self._unusable: OrderedDict[int, tuple[float, str]] = OrderedDict()
        self._pause_s = _FIRST_PAUSE_S
        self._paused: tuple[float, str] | None = None

    def avro(self, number: int) -> AvroSchema:
        """Return the decoder of data in Avro with a schema id. For errors, see `schema`. DataError also if the schema
        has another type.
        """
        found = self.schema(number)
        if isinstance(found, ProtobufFile):
            raise DataError(f"schema id {number} of {self.name}: its type is PROTOBUF, not AVRO")
        return found

    def protobuf(self, number: int) -> ProtobufFile:
        """Return the decoders of messages in Protobuf with a schema id. For errors, see `schema`. DataError also if the
        schema has another type.
        """
        found = self.schema(number)
        if not isinstance(found, ProtobufFile):
            raise DataError(f"schema id {number} of {self.name}: its type is AVRO, not PROTOBUF")
        return found

    def schema(self, number: int) -> AvroSchema | ProtobufFile:
        """Return the decoder of data with a schema id.

        DataError if the registry has no such schema, or if the schema cannot be used. UnavailableError if the registry
        gives no answer. After an UnavailableError, the registry is not asked again for some time. This time increases,
        to at most 10 s. During this time, calls raise the same error.
        """
        with self._lock:
            found = self._schemas.get(number)
            if found is not None:
                self._schemas.move_to_end(number)
                return found
            until, reason = self._unusable.get(number, (0.0, ""))
            if reason and self._now() < until:
                raise DataError(reason)
            if self._paused is not None and self._now() < self._paused[0]:
                raise UnavailableError(self._paused[1])
            try:
                made = self._fetched(number)
            except DataError as error:
                _put(self._unusable, number, (self._now() + _UNUSABLE_S, str(error)), self._limits.max_schemas)
                raise
            except UnavailableError as error:
                self._paused = self._now() + self._pause_s, str(error)
                self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
                raise
            _put(self._schemas, number, made, self._limits.max_schemas)
            return made

    def register(self, subject: str, schema: str) -> int:
        """Register a schema in Avro under a subject, and return its id. A registered schema keeps its id.

        DataError if the registry refuses the schema, for example because it is incompatible with the schemas that the
        subject has. UnavailableError if the registry does not answer, or if its answer is neither an id nor a refusal.
        """
        body = json.dumps({"schema": schema, "schemaType": "AVRO"}).encode()
        status, document = self._exchanged("POST", f"/subjects/{quote(subject, safe='')}/versions", body)
        if status in _REFUSED:
            reason = str(document.get("message"))[:_SHOWN]
            raise DataError(f"{self.name} refuses the schema of subject {subject}: {reason}")
        number = document.get("id")
        if status != httpx.codes.OK or type(number) is not int or not 0 <= number <= _MAX_ID:
            raise UnavailableError(f"{self.name} answers with status {status} and no schema id")
        return number

    def _fetched(self, number: int) -> AvroSchema | ProtobufFile:
        try:
            document = self._get(f"/schemas/ids/{number}")
            if _type(document) == "PROTOBUF":
                return compile_protobuf(_text(document), self._limits, self._references(document))
            return compile_avro(_text(document), self._limits, [text for _, text in self._references(document)])
        except DataError as error:
            raise DataError(f"schema id {number} of {self.name}: {error}") from error

    def _references(self, document: dict[str, Any]) -> list[tuple[str, str]]:
        """Return the names and texts of the schemas to which a schema refers, directly or indirectly. In the result,
        each schema comes after the schemas to which it refers.
        """
        texts: dict[tuple[str, int], tuple[str, str]] = {}
        self._collect(document, texts, set())
        return list(texts.values())

    def _collect(
        self, document: dict[str, Any], texts: dict[tuple[str, int], tuple[str, str]], seen: set[tuple[str, int]]
    ) -> None:
        references = document.get("references") or []
        if not isinstance(references, list):
            raise DataError("its references are not a list")
        for each in references:
            if not isinstance(each, dict) or type(each.get("version")) is not int:
                raise DataError("a reference does not consist of a subject and a version")
            key = str(each.get("subject")), each["version"]
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > _MAX_REFERENCES:
                raise DataError(f"it refers to more than {_MAX_REFERENCES} schemas")
            found = self._get(f"/subjects/{quote(key[0], safe='')}/versions/{key[1]}")
            self._collect(found, texts, seen)
            texts[key] = str(each.get("name")), _text(found)

    def _get(self, path: str) -> dict[str, Any]:
        """Return the document at a path of the registry. DataError if the path has no document, or if the document is
        not a registry's document. UnavailableError for every other failure, because an operator can correct such a
        failure. An example is a refused user.
        """
        status, document = self._exchanged("GET", path)
        if document.get("error_code") in _NOT_FOUND and status == httpx.codes.NOT_FOUND:
            raise DataError("the registry has no such schema")
        if status != httpx.codes.OK:
            raise UnavailableError(f"{self.name} answers with status {status}")
        self._paused, self._pause_s = None, _FIRST_PAUSE_S
        return document

    def _exchanged(self, method: str, path: str, content: bytes | None = None) -> tuple[int, dict[str, Any]]:
        """Send a request, and return the status and the document of the response. UnavailableError if the response is
        not a JSON object. DataError if the response exceeds `max_schema_bytes`.
        """
        most = 2 * self._limits.max_schema_bytes + (1 << 16)  # quotes in the schema are escaped
        headers = {} if content is None else {"content-type": _MEDIA_TYPE}
        body = bytearray()
        try:
            with self._http.stream(method, path, content=content, headers=headers) as response:
                for block in response.iter_bytes():
                    body += block
                    if len(body) > most:
                        raise DataError(
                            f"a schema of more than {self._limits.max_schema_bytes} bytes (max_schema_bytes)"
                        )
        except httpx.HTTPError as error:
            raise UnavailableError(f"{self.name} is unavailable: {error}") from error
        try:
            document = json.loads(bytes(body))
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):  # perhaps a proxy, or another server
            raise UnavailableError(f"{self.name} does not answer with a JSON object (status {response.status_code})")
        return response.status_code, document

    def close(self) -> None:
        """Close the connections."""
        self._http.close()


def _type(document: dict[str, Any]) -> str:
    kind = document.get("schemaType", "AVRO")
    if kind not in ("AVRO", "PROTOBUF"):
        raise DataError(f"its type is {kind!r:.40}, not AVRO or PROTOBUF")
    return str(kind)


def _text(document: dict[str, Any]) -> str:
    text = document.get("schema")
    if not isinstance(text, str):
        raise DataError("the registry's answer has no schema")
    return text


def _put(cache: OrderedDict[int, Any], key: int, value: Any, most: int) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > most:
        cache.popitem(last=False)


def _checked_url(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError) as error:
        raise DataError(f"the URL of the schema registry is invalid: {error}") from error
    if url.userinfo:
        raise DataError("the URL of the schema registry has a user: credentials belong into their own file")
    if url.scheme not in ("http", "https") or not url.host:
        raise DataError("the URL of the schema registry begins with http:// or https://, and names a host")
    return url


def _authorisation(access: RegistryAccess) -> tuple[dict[str, str], tuple[str, str] | None]:
    """Return the HTTP headers and the pair (user, password) for the credentials. The pair is None for a bearer
    token.
    """
    if access.credentials is None:
        return {}, None
    try:
        text = access.credentials.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise StorageError(f"the credentials of the schema registry cannot be read: {error}") from error
    if not text or not text.isprintable():
        raise StorageError("the file with the credentials of the schema registry is not one line of text")
    user, colon, password = text.partition(":")
    return ({}, (user, password)) if colon else ({"authorization": f"Bearer {text}"}, None)


def _trusted(access: RegistryAccess) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=access.ca)
    except (OSError, ssl.SSLError) as error:
        raise StorageError(f"the CA certificates of the schema registry cannot be used: {error}") from error
