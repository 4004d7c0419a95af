"""Which browsers' requests are answered: hosts, origins, CORS."""

from __future__ import annotations

import socket

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import penstock
from penstock.http.embedded import application
from penstock.http.web_access import Access
from penstock.runtime.health import Health
from penstock.runtime.health_routes import application as service
from penstock.runtime.metrics import Metrics
from penstock.runtime.settings import ServiceSettings

INSERT = "INSERT DATA { <http://x/a> <http://x/p> 1 }"
PLAIN = {"content-type": "text/plain"}


@pytest.fixture
def engine():
    with penstock.Engine() as made:
        yield made


def client(access, base="http://localhost:7878"):
    app = Starlette(
        routes=[Route("/", lambda _: PlainTextResponse("here"), methods=["GET", "POST"])],
        middleware=access.middleware(),
    )
    return TestClient(app, base_url=base)


def test_a_page_of_another_site_cannot_write(engine):
    http = TestClient(application(engine), base_url="http://localhost:7878")
    refused = http.post("/update", content=INSERT, headers={**PLAIN, "origin": "http://evil.example"})
    assert (refused.status_code, refused.json()["error"]) == (403, "Forbidden")
    assert "--allow-origin" in refused.json()["message"]
    assert engine.query("ASK { ?s ?p ?o }") is False


def test_a_rebound_name_is_refused(engine):
    http = TestClient(application(engine), base_url="http://evil.example:7878")
    refused = http.get("/stats", headers={"origin": "http://evil.example:7878"})
    assert (refused.status_code, "--allow-host" in refused.json()["message"]) == (403, True)


def test_the_page_works_with_its_own_origin(engine):
    http = TestClient(application(engine), base_url="http://localhost:7878")
    assert "<title>Penstock</title>" in http.get("/").text
    own = {"origin": "http://localhost:7878"}
    asked = http.post("/sparql", content="ASK {}", headers={**own, "content-type": "application/sparql-query"})
    assert asked.json()["boolean"] is True
    assert http.post("/update", content=INSERT, headers={**PLAIN, **own}).status_code == 204


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:9999",
        "http://localhost",
        "null",
        "http://localhost:7878.evil.example",
        "nonsense",
        "http://[",
        "",
    ],
)
def test_other_origins_are_refused(origin):
    assert client(Access()).post("/", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "", "[", "localhost.evil.example", "192.0.2.7"])
def test_other_hosts_are_refused(host):
    assert client(Access()).get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7878", "127.0.0.1:1", "[::1]:7878"])
def test_own_hosts_are_answered(host):
    assert client(Access()).get("/", headers={"host": host}).status_code == 200


def test_the_address_listened_on_and_added_names_are_own():
    access = Access.listening_on("build.example", ["Db.example"])
    answers = {
        h: client(access).get("/", headers={"host": h}).status_code for h in ("build.example", "db.example:1", "x")
    }
    assert answers == {"build.example": 200, "db.example:1": 200, "x": 403}
    assert client(Access.listening_on("127.0.0.1", ["*"])).get("/", headers={"host": "any"}).status_code == 200


def test_on_all_addresses_the_machines_name_and_addresses_are_own():
    http = client(Access.listening_on("0.0.0.0"))
    hosts = (socket.gethostname(), "192.0.2.7:7878", "[2001:db8::1]", "evil.example")
    assert [http.get("/", headers={"host": host}).status_code for host in hosts] == [200, 200, 200, 403]


def test_an_allowed_origin_may_read_and_is_answered_before_it_writes():
    http = client(Access.listening_on("127.0.0.1", origins=["https://app.example/"]))
    origin = {"origin": "https://app.example"}
    assert http.get("/", headers=origin).headers["access-control-allow-origin"] == "https://app.example"
    ahead = http.options("/", headers={**origin, "access-control-request-method": "PUT"})
    assert (ahead.status_code, "PUT" in ahead.headers["access-control-allow-methods"]) == (200, True)
    other = http.options("/", headers={"origin": "https://b.example", "access-control-request-method": "PUT"})
    assert other.status_code == 403
    assert (
        client(Access.listening_on("::1", origins=["*"])).post("/", headers={"origin": "http://any"}).status_code == 200
    )


def test_a_proxys_scheme_may_differ():
    http = client(Access.listening_on("127.0.0.1", ["app.example"]))
    headers = {"host": "app.example", "origin": "https://app.example"}
    assert http.post("/", headers=headers).status_code == 200


class TestServices:
    def http(self, **settings):
        made = ServiceSettings(bootstrap_servers="b:1", **settings)
        app = service(Health(), Metrics("test"), lambda: None, middleware=made.access().middleware())
        return TestClient(app, base_url="http://coordinator.cluster:8080")

    def test_every_name_is_answered_but_no_foreign_origin(self):
        http = self.http()
        assert http.get("/health/live").status_code == 200
        assert http.get("/health/live", headers={"origin": "http://evil.example"}).status_code == 403
        assert http.get("/health/live", headers={"origin": "http://coordinator.cluster:8080"}).status_code == 200

    def test_names_and_origins_are_settings(self):
        http = self.http(http_allow_hosts="a.cluster, coordinator.cluster", http_allow_origins="http://app.example")
        assert http.get("/health/live", headers={"origin": "http://app.example"}).status_code == 200
        assert http.get("/health/live", headers={"host": "evil.example"}).status_code == 403
        assert http.get("/health/live", headers={"host": "a.cluster"}).status_code == 200
