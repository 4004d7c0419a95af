"""HTTP requests to services: which failures are retried."""

from __future__ import annotations

import socket
from threading import Thread

import httpx
import pytest

from penstock.client import Client
from penstock.client.service_requests import Credentials, ServiceClient, ServiceRequest
from penstock.errors import AccessError, DataError, PenstockError, UnknownStreamError
from penstock.log import MemoryLog, Topic
from penstock.log.clock import VirtualClock

_WHOLE = b'HTTP/1.1 400 Bad Request\r\ncontent-length: 40\r\n\r\n{"error": "DataError", "message": "bad"} '


def asked(request, *answers):
    """Send a request to a server that gives these responses, one per connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                with server.accept()[0] as connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        try:
            return ServiceClient().send(lambda: [url], request)
        finally:
            thread.join(5.0)


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request"])
def test_a_truncated_response_is_retried(status):
    half = b"HTTP/1.1 " + status + b"\r\ncontent-length: 100\r\n\r\nhalf"
    with pytest.raises(DataError, match="bad"):
        asked(ServiceRequest("GET", "/streams"), half, b"no HTTP\r\n\r\n", _WHOLE)


def test_a_delete_whose_response_was_lost_succeeds_on_retry():
    gone = b'HTTP/1.1 404 Not Found\r\ncontent-length: 39\r\n\r\n{"error": "NotFound", "message": "none"}'
    gateway = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"
    assert asked(ServiceRequest("DELETE", "/queries/q"), b"", gone) == b""
    assert asked(ServiceRequest("DELETE", "/queries/q"), gateway, gone) == b""
    with pytest.raises(PenstockError):
        asked(ServiceRequest("DELETE", "/queries/q"), gone)
    with pytest.raises(PenstockError):
        asked(ServiceRequest("GET", "/queries/q"), b"", gone)


def test_a_stream_that_does_not_exist_is_an_unknown_stream():
    log = MemoryLog(VirtualClock())
    log.create([Topic("penstock.events.known", 1)])
    client = Client(log=log)
    client.push("known", b"<http://x/a> <http://x/b> <http://x/c> .", 1)
    for verb in (lambda: client.push("none", b"", 1), lambda: client.advance("none", 1)):
        with pytest.raises(UnknownStreamError, match="there is no stream named 'none'"):
            verb()


def test_a_token_that_a_function_returns_is_renewed_when_a_service_refuses_it():
    presented, tokens = [], iter(["first", "second"])

    def answer(request):
        presented.append(request.headers["authorization"])
        return httpx.Response(200 if presented[-1] == "Bearer second" else 401, json={})

    client = ServiceClient(Credentials(lambda: next(tokens)))
    client._http = httpx.Client(transport=httpx.MockTransport(answer))
    for _ in range(2):
        client.send(lambda: ["http://service"], ServiceRequest("POST", "/data", b""))
    assert presented == ["Bearer first", "Bearer second", "Bearer second"]


@pytest.mark.parametrize("token", ["same", lambda: "same"])
def test_a_token_that_stays_the_same_is_refused_once(token):
    requests = []

    def answer(request):
        requests.append(request)
        return httpx.Response(401, json={"error": "Unauthorized", "message": "the token has expired"})

    client = ServiceClient(Credentials(token))
    client._http = httpx.Client(transport=httpx.MockTransport(answer))
    with pytest.raises(AccessError, match="expired"):
        client.send(lambda: ["http://service"], ServiceRequest("GET", "/streams"))
    assert len(requests) == 1
