"""Requests to a standby instance reach the active one."""

from __future__ import annotations

import socket
from threading import Thread
from typing import TYPE_CHECKING

import httpx
import pytest
import trustme
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from penstock.http.error_responses import errors_as_json
from penstock.http.forwarding import Forwarding
from penstock.http.security.certificates import Certificates
from penstock.http.web_server import WebServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.requests import Request


class Instance:
    """A service of one route. `active`: the URL that it forwards to."""

    def __init__(self, name: str, certificate: Path | None = None, folder: Path | None = None) -> None:
        self.name, self.active = name, None
        forwarding = Forwarding(self._active, certificate)
        endpoint = errors_as_json(forwarding.around(self._echo))
        app = Starlette(routes=[Route("/{path:path}", endpoint, methods=["GET", "PUT", "DELETE"])])
        files = None if folder is None else Certificates(folder / "tls.crt", folder / "tls.key")
        self._server = WebServer(app, "127.0.0.1", 0, certificates=files)
        self.url = f"{'http' if folder is None else 'https'}://127.0.0.1:{self._server.port}"

    async def _active(self) -> str | None:
        return self.active

    async def _echo(self, request: Request) -> Response:
        if request.method == "DELETE":
            return Response(status_code=204)
        seen = {
            "name": self.name,
            "method": request.method,
            "path": request.url.path,
            "query": request.url.query,
            "body": (await request.body()).decode(),
            "headers": dict(request.headers),
        }
        return JSONResponse(seen, 401 if "refuse" in request.query_params else 200, {"www-authenticate": "Bearer"})

    def stop(self) -> None:
        self._server.stop()


@pytest.fixture
def pair() -> Iterator[tuple[Instance, Instance]]:
    standby, active = Instance("standby"), Instance("active")
    standby.active = active.url
    yield standby, active
    standby.stop()
    active.stop()


def test_a_standby_sends_a_request_on_and_returns_the_response(pair):
    standby, active = pair
    headers = {"authorization": "Bearer t", "idempotency-key": "k", "origin": "http://x", "content-type": "text/plain"}
    response = httpx.put(f"{standby.url}/queries/a%2Fb?wait=1&x=%20", content=b"REGISTER", headers=headers)
    seen = response.json()
    assert (response.status_code, seen["name"], seen["method"], seen["body"]) == (200, "active", "PUT", "REGISTER")
    assert (seen["path"], seen["query"]) == ("/queries/a/b", "wait=1&x=%20")
    assert seen["headers"]["authorization"] == "Bearer t"
    assert seen["headers"]["idempotency-key"] == "k"
    assert seen["headers"]["host"] == standby.url.removeprefix("http://")
    assert "origin" not in seen["headers"]
    assert httpx.delete(f"{standby.url}/queries/a").status_code == 204
    refused = httpx.get(f"{standby.url}/queries?refuse=")
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert httpx.get(f"{active.url}/").json()["name"] == "active"


def test_a_forwarded_request_is_not_forwarded_again(pair):
    standby, active = pair
    active.active = standby.url
    assert httpx.get(f"{standby.url}/").json()["name"] == "active"


def test_a_standby_answers_503_if_the_active_instance_does_not_respond(pair):
    standby, active = pair
    active.stop()
    response = httpx.get(f"{standby.url}/")
    assert (response.status_code, response.json()["error"]) == (503, "NotActiveError")
    assert active.url in response.json()["message"]


def test_a_response_that_is_lost_is_not_taken_for_a_refusal(pair):
    standby, _ = pair
    with socket.create_server(("127.0.0.1", 0)) as listener:
        standby.active = f"http://127.0.0.1:{listener.getsockname()[1]}"
        found: list[httpx.Response] = []
        asking = Thread(target=lambda: found.append(httpx.get(f"{standby.url}/", timeout=30)))
        asking.start()
        listener.accept()[0].close()
        asking.join(30)
    assert (found[0].status_code, found[0].json()["error"]) == (502, "BadGateway")


def test_over_https_only_the_own_certificate_is_trusted(tmp_path: Path):
    authority = trustme.CA()
    for name in ("shared", "other"):
        folder = tmp_path / name
        folder.mkdir()
        issued = authority.issue_cert("coordinator.example")
        (folder / "tls.key").write_bytes(issued.private_key_pem.bytes())
        (folder / "tls.crt").write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    standby = Instance("standby", tmp_path / "shared" / "tls.crt", tmp_path / "shared")
    actives = [Instance(name, None, tmp_path / name) for name in ("shared", "other")]
    found = []
    for active in actives:
        standby.active = active.url
        found.append(httpx.get(f"{standby.url}/", verify=False).status_code)  # its name is not 127.0.0.1
    for instance in (standby, *actives):
        instance.stop()
    assert found == [200, 503]
