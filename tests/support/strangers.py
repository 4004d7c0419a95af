"""Speaks to a TCP port as a stranger, in all protocols of a cluster. Uses no code of Penstock."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import struct
from contextlib import closing, suppress
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import flight

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HOST, WAIT_S, MOST_BYTES = "127.0.0.1", 2.0, 1 << 20
HEALTH = ("/health/live", "/health/ready")
SENT = {
    "garbage": bytes(range(256)) * 8,
    "zeros": bytes(64),
    "HTTP/1.1": b"GET /streams HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "HTTP/1.0": b"GET /metrics HTTP/1.0\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5),
    "hello of the data plane": struct.pack("<IHHQII32s", 48, 1, 0, 0x314E4C50534E4550, 1, 0, bytes(32)),
    "hello of the control connection": b"penstock-control-1" + bytes(32),
}
_CHANGES = ("POST", "PUT", "DELETE")
_METHODS = ("GET", *_CHANGES)
_STATUS = re.compile(rb"HTTP/1\.[01] ([45])\d\d ")
_TERMS = pa.schema([("kind", pa.uint8()), ("lexical", pa.utf8()), ("datatype", pa.utf8()), ("lang", pa.utf8())])


class Answer(NamedTuple):
    """What a port has answered. `harmless`: it is an error, a closed connection or a health check."""

    port: int
    asked: str
    text: bytes
    harmless: bool


def anonymous() -> ssl.SSLContext:
    """Return TLS of a client that shows no certificate and trusts everybody."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.VerifyMode.CERT_NONE
    return made


def answers(port: int, paths: set[str], folder: Path) -> Iterator[Answer]:
    """Try a port by all means. `folder`: has tls.crt and tls.key, of a CA that the cluster does not know."""
    known = anonymous()
    known.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    for channel, context in (("plain", None), ("TLS", anonymous()), ("TLS with an unknown certificate", known)):
        for name, data in SENT.items():
            text = reply(port, data, context)
            yield Answer(port, f"{channel}: {name}", text, _refuses(text))
    yield from _pages(port, paths)
    yield from _flights(port, folder)


def reply(port: int, data: bytes, context: ssl.SSLContext | None) -> bytes:
    """Return what a port answers to some bytes until it closes the connection or waits for more."""
    found = b""
    with suppress(OSError):  # of TLS, too: the door is closed
        stream = socket.create_connection((HOST, port), WAIT_S)
        with stream if context is None else context.wrap_socket(stream) as stream:
            stream.sendall(data)
            while len(found) < MOST_BYTES and (more := stream.recv(1 << 16)):
                found += more
    return found


def _refuses(text: bytes) -> bool:
    """Nothing, a TLS alert or a status of an error."""
    return not text or text.startswith(b"\x15\x03") or _STATUS.match(text) is not None


def _pages(port: int, paths: set[str]) -> Iterator[Answer]:
    if not reply(port, b"GET /health/live HTTP/1.0\r\n\r\n", anonymous()).startswith(b"HTTP/"):
        return
    for headers in ({}, {"authorization": "Bearer penstock", "cookie": "penstock_token=penstock"}):
        for path in sorted(paths):
            for method in _METHODS:
                body = b"SELECT * { ?s ?p ?o }" if method in _CHANGES else None
                with closing(http.client.HTTPSConnection(HOST, port, timeout=30, context=anonymous())) as connection:
                    connection.request(method, path, body, headers)
                    got = connection.getresponse()
                    text = str(got.headers).encode() + got.read(MOST_BYTES)
                harmless = got.status >= http.HTTPStatus.BAD_REQUEST or (method == "GET" and path in HEALTH)
                yield Answer(port, f"{method} {path}", text, harmless)


def _flights(port: int, folder: Path) -> Iterator[Answer]:
    pair = {"cert_chain": (folder / "tls.crt").read_bytes(), "private_key": (folder / "tls.key").read_bytes()}
    for scheme, options in (("grpc", {}), ("grpc+tls", {}), ("grpc+tls", pair)):
        more = {"disable_server_verification": True, **options} if scheme == "grpc+tls" else {}
        with closing(flight.FlightClient(f"{scheme}://{HOST}:{port}", **more)) as client:
            for ask in (_listing, _look_up):
                try:
                    text, harmless = ask(client, flight.FlightCallOptions(timeout=WAIT_S)), False
                except (pa.ArrowException, OSError) as error:
                    text, harmless = str(error).encode(), True
                yield Answer(port, f"Flight by {scheme}", text, harmless)


def _listing(client: flight.FlightClient, options: flight.FlightCallOptions) -> bytes:
    return repr(list(client.list_flights(options=options))).encode()


def _look_up(client: flight.FlightClient, options: flight.FlightCallOptions) -> bytes:
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"find"), options)
    with writer:
        writer.begin(_TERMS)
        writer.write_table(pa.table([[1], ["http://x/a"], [""], [""]], schema=_TERMS))
        writer.done_writing()
        return str(reader.read_all()).encode()
