"""A minimal schema registry for tests. It speaks the part of Confluent's HTTP API that producers with a serializer and the
client of Penstock use, and what Apicurio's converter for Kafka Connect uses of Apicurio's API. It is not a product.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator


class Registry:
    """The registered schemas. `down`: whether requests fail with status 503."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.down = False
        self.requests: list[str] = []
        self._lock = threading.Lock()
        self._ids: dict[str, int] = {}
        self._documents: dict[int, dict[str, str]] = {}
        self._versions: dict[str, list[int]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def register(self, schema: object, subject: str = "subject", kind: str = "AVRO") -> int:
        """Return the id of a schema. A schema in Avro is given as JSON text or its value, one in Protobuf as a text.
        The same schema has the same id.
        """
        text = schema if isinstance(schema, str) else json.dumps(schema)
        with self._lock:
            known = json.dumps(json.loads(text), sort_keys=True) if kind == "AVRO" else text
            number = self._ids.setdefault(known, len(self._ids) + 1)
            self._documents.setdefault(number, {"schema": text} | ({} if kind == "AVRO" else {"schemaType": kind}))
            versions = self._versions.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
            return number

    def schema(self, number: int) -> str:
        """Return the text of a schema."""
        return self._documents[number]["schema"]

    def subjects(self) -> set[str]:
        """Return the subjects that have schemas."""
        return set(self._versions)

    def _register(self, document: dict[str, str], subject: str) -> int:
        return self.register(document["schema"], subject, document.get("schemaType", "AVRO"))

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, object]:
        """Return the status and the document that answer a request."""
        self.requests.append(f"{method} {path}")
        if self.down:
            return 503, {"error_code": 50003, "message": "the registry is down"}
        match method, [unquote(part) for part in path.partition("?")[0].strip("/").split("/")]:
            case "GET", ["schemas", "ids", number] if number.isdigit():
                found = self._documents.get(int(number))
                missing = {"error_code": 40403, "message": "Schema not found"}
                return (404, missing) if found is None else (200, found)
            case "GET", ["apis", "registry", "v2", "ids", "contentIds", number] if int(number) in self._documents:
                return 200, json.loads(self._documents[int(number)]["schema"])
            case "GET", ["apis", "registry", "v2", "ids", "contentIds", _, "references"]:
                return 200, []
            case "POST", ["subjects", subject, "versions"]:
                return 200, {"id": self._register(json.loads(body), subject)}
            case "POST", ["subjects", subject]:
                number = self._register(json.loads(body), subject)
                version = self._versions[subject].index(number) + 1
                return 200, {"subject": subject, "id": number, "version": version, **self._documents[number]}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}


@contextmanager
def registry() -> Iterator[Registry]:
    """A registry that listens on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, document = found.answer(self.command, self.path, body)
            data = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/vnd.schemaregistry.v1+json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = _answer  # noqa: N815 - names of the base class

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Registry(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
