"""Tokens, roles, rates, HTTPS and the audit log of the HTTP interfaces (ADR 66)."""

from __future__ import annotations

import json
import logging
import ssl
import time

import httpx
import pytest
import trustme
from starlette.testclient import TestClient

from penstock.engine import Engine
from penstock.http.embedded import application
from penstock.http.security import Identity, Role, TokenError, TokenFile, certificates, new_token, role_of, tokens
from penstock.http.security.audit import write_to
from penstock.http.security.certificates import Certificates
from penstock.http.security.request_rate import RequestRates
from penstock.http.web_server import WebServer

STREAM = "http%3A%2F%2Fx%2Fs"


@pytest.fixture
def made(tmp_path):
    """A file with one token per role, and the tokens by role."""
    path, by_role = tmp_path / "tokens", {}
    lines = ["# name role digest"]
    for role in Role:
        by_role[role], line = new_token({Role.READ: "reader", Role.WRITE: "writer", Role.ADMIN: "admin"}[role], role)
        lines.append(line)
    path.write_text("\n".join(lines))
    return path, by_role


@pytest.fixture
def http(made):
    """Sends requests to an engine that asks for tokens."""
    path, by_role = made
    with Engine() as engine:
        client = TestClient(application(engine, identities=TokenFile(path)), base_url="http://localhost")

        def ask(method: str, url: str, role: Role | None = None, **arguments):
            headers = {} if role is None else {"authorization": f"Bearer {by_role[role]}"}
            return client.request(method, url, headers=headers, **arguments)

        ask.client = client
        ask.tokens = by_role
        yield ask


ROUTES = [
    ("GET", "/health/live", None),
    ("GET", "/", None),
    ("GET", "/stats", Role.READ),
    ("GET", "/metrics", Role.READ),
    ("GET", "/streams", Role.READ),
    ("POST", "/sparql", Role.READ),
    ("GET", "/queries/q/results", Role.READ),
    ("POST", "/update", Role.WRITE),
    ("POST", "/data", Role.WRITE),
    ("GET", "/rdf-graphs/g", Role.READ),
    ("POST", "/rdf-graphs", Role.WRITE),
    ("PUT", "/rdf-graphs/g/h", Role.WRITE),
    ("DELETE", "/rdf-graphs", Role.WRITE),
    ("PATCH", "/rdf-graphs", Role.ADMIN),
    ("POST", "/streams/http://x/s/events", Role.WRITE),
    ("POST", "/streams/http://x/s/advance", Role.WRITE),
    ("POST", "/dead-letters", Role.WRITE),
    ("PUT", "/streams/http://x/s/events", Role.ADMIN),
    ("PUT", "/queries/q", Role.ADMIN),
    ("DELETE", "/queries/q", Role.ADMIN),
    ("POST", "/streams", Role.ADMIN),
    ("POST", "/loads", Role.ADMIN),
    ("PATCH", "/anything", Role.ADMIN),
]


@pytest.mark.parametrize(("method", "path", "role"), ROUTES)
def test_a_route_requires_a_role(method, path, role):
    assert role_of(method, path) is role


def test_without_a_token_only_health_and_the_page_answer(http):
    assert http("GET", "/health/live").status_code == 200
    assert http("GET", "/").status_code == 200
    for method, path, role in ROUTES:
        if role is not None:
            response = http(method, path)
            assert response.status_code == 401, path
            assert response.headers["www-authenticate"].startswith("Bearer")
            assert response.json()["error"] == "Unauthorized"


def test_a_wrong_token_is_refused(http):
    response = http.client.get("/stats", headers={"authorization": "Bearer nonsense"})
    assert (response.status_code, response.json()["message"]) == (401, "the token is not valid")
    assert http.client.get("/stats", headers={"authorization": "Basic YTpi"}).status_code == 401


def test_each_role_includes_the_ones_before_it(http):
    settings = {"json": {"timing": "all"}}
    assert http("PUT", f"/streams/{STREAM}", Role.WRITE, **settings).status_code == 403
    assert http("PUT", f"/streams/{STREAM}", Role.ADMIN, **settings).status_code == 200
    event = {"params": {"timestamp": 1}, "content": "<urn:a> <urn:b> <urn:c> ."}
    refused = http("POST", f"/streams/{STREAM}/events", Role.READ, **event)
    assert refused.status_code == 403
    assert refused.json()["message"] == "reader has the role read, this needs write"
    assert http("POST", f"/streams/{STREAM}/events", Role.WRITE, **event).is_success
    assert http("GET", "/stats", Role.READ).json()["streams"]


def test_an_update_is_executed_and_an_error_has_a_position(http):
    headers = {"authorization": f"Bearer {http.tokens[Role.ADMIN]}"}
    text = "INSERT DATA { <urn:a> <urn:b> 1 } ; INSERT { <urn:c> <urn:b> ?x } WHERE { <urn:a> <urn:b> ?x }"
    assert http.client.post("/update", content=text, headers=headers).status_code == 204
    asked = {"query": "ASK { <urn:c> <urn:b> 1 }"}
    assert http.client.get("/sparql", params=asked, headers=headers).json()["boolean"] is True
    assert http.client.post("/update", content="DELETE WHERE { <urn:c> ?p ?o }", headers=headers).status_code == 204
    assert http.client.get("/sparql", params=asked, headers=headers).json()["boolean"] is False
    text = "CREATE GRAPH <urn:new> ;\n LOAD <file:x.ttl>"
    for path, body in (("/update", {"content": text}), ("/sparql", {"data": {"update": text}})):
        refused = http.client.post(path, headers=headers, **body)
        assert (refused.status_code, refused.json()["line"], refused.json()["column"]) == (400, 2, 2)
        assert refused.json()["message"].startswith("LOAD is not supported without a load_directory")


@pytest.mark.parametrize("form", [True, False])
def test_an_update_by_the_path_of_queries_requires_the_role_of_updates(http, form):
    text = "INSERT DATA { <urn:a> <urn:b> 1 }"
    body = {"data": {"update": text}} if form else {"content": text}
    typed = {} if form else {"content-type": "application/sparql-update"}

    def post(role):
        headers = typed | {"authorization": f"Bearer {http.tokens[role]}"}
        return http.client.post("/sparql", headers=headers, **body)

    refused = post(Role.READ)
    assert (refused.status_code, refused.json()["error"]) == (403, "AccessError")
    assert refused.json()["message"] == "reader has the role read, this needs write"
    assert post(Role.WRITE).status_code == 204


def test_a_login_requires_a_valid_token(http):
    assert http.client.post("/login", content="nonsense").status_code == 401
    assert http("GET", "/login").status_code == 405


def test_the_cookie_of_a_login_is_a_token_that_scripts_cannot_read(made):
    path, by_role = made
    with Engine() as engine:
        client = TestClient(application(engine, identities=TokenFile(path)), base_url="http://localhost")
        response = client.post("/login", content=by_role[Role.READ])
        assert response.json() == {"name": "reader", "role": "read"}
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert client.get("/stats").status_code == 200
        assert client.get("/stats", headers={"origin": "http://evil.example"}).status_code == 403
        client.post("/login", content="")
        assert client.get("/stats").status_code == 401


def test_a_changed_file_takes_effect_and_a_broken_one_does_not(made, caplog):
    path, by_role = made
    clock = iter(float(n * 10) for n in range(100))
    found = TokenFile(path, lambda: next(clock))
    assert found.identify(by_role[Role.READ]) == Identity("reader", Role.READ)
    token, line = new_token("late", Role.WRITE)
    path.write_text(line)
    assert found.identify(by_role[Role.READ]) is None
    assert found.identify(token).name == "late"
    path.write_text("late write not-a-digest")
    assert found.identify(token).name == "late"
    assert f"{path}, line 1" in found.last_error
    path.unlink()
    assert found.identify(token).name == "late"
    path.write_text(line + "\n")
    assert found.identify(token).name == "late"
    assert found.last_error is None
    assert token not in caplog.text


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("alice", "expected NAME ROLE"),
        ("alice root sha256:" + "0" * 64, "the role must be read, write or admin"),
        ("alice read secret-token", "not the token itself"),
        ("a/b read sha256:" + "0" * 64, "the name may have"),
        ("alice read sha256:" + "0" * 64 + " rate=-1", "limits are"),
        ("alice read sha256:" + "0" * 64 + " speed=1", "limits are"),
        ("", "contains no token"),
    ],
)
def test_a_malformed_line_is_named_without_its_token(tmp_path, line, reason):
    path = tmp_path / "tokens"
    path.write_text(line)
    with pytest.raises(TokenError) as caught:
        TokenFile(path)
    assert reason in str(caught.value)
    assert "secret-token" not in str(caught.value)


def test_a_token_is_limited_in_rate_and_body(tmp_path):
    path = tmp_path / "tokens"
    token, line = new_token("slow", Role.ADMIN)
    path.write_text(f"{line} rate=2 max_body_mb=0.001")
    with Engine() as engine:
        client = TestClient(application(engine, identities=TokenFile(path)), base_url="http://localhost")
        headers = {"authorization": f"Bearer {token}"}
        large = client.post("/update", content=b"#" * 2_000, headers=headers)
        assert (large.status_code, large.json()["error"]) == (413, "LimitError")
        assert client.get("/stats", headers=headers).status_code == 200
        beyond = client.get("/stats", headers=headers)
        assert beyond.status_code == 429
        assert int(beyond.headers["retry-after"]) >= 1


def test_rates_recover_with_time():
    now = [0.0]
    rates, slow = RequestRates(lambda: now[0]), Identity("s", Role.READ, rate=2.0)
    assert [rates.wait_s(slow) for _ in range(3)] == [0.0, 0.0, 0.5]
    now[0] = 0.5
    assert rates.wait_s(slow) == 0.0
    assert rates.wait_s(Identity("f", Role.READ)) == 0.0


def test_changes_are_audited_without_tokens_and_bodies(made, tmp_path):
    path, by_role = made
    logger, file = logging.getLogger("penstock.audit"), tmp_path / "audit.jsonl"
    before = (logger.level, logger.propagate)
    write_to(file)
    try:
        with Engine() as engine:
            client = TestClient(application(engine, identities=TokenFile(path)), base_url="http://localhost")
            for role in (Role.READ, Role.WRITE):
                headers = {"authorization": f"Bearer {by_role[role]}"}
                client.get("/stats", headers=headers)
                client.post("/update", content="INSERT DATA { <urn:a> <urn:secret> 1 }", headers=headers)
                client.post("/sparql", data={"query": "ASK {}"}, headers=headers)
                client.post("/sparql", data={"update": "INSERT DATA { <urn:a> <urn:c> 1 }"}, headers=headers)
    finally:
        logger.removeHandler(logger.handlers[-1])
        logger.level, logger.propagate = before
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(e["event"], e["user"], e["method"], e["path"], e["status"]) for e in lines] == [
        ("refused change", "reader", "POST", "/update", 403),
        ("refused change", "reader", "POST", "/sparql", 403),
        ("change", "writer", "POST", "/update", 204),
        ("change", "writer", "POST", "/sparql", 204),
    ]
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    assert "secret" not in text
    assert not any(token in text for token in by_role.values())


class TestHttps:
    @pytest.fixture
    def files(self, tmp_path):
        authority = trustme.CA()
        (tmp_path / "ca.crt").write_bytes(authority.cert_pem.bytes())

        def issue(name: str) -> None:
            made = authority.issue_cert(name)
            (tmp_path / "tls.key").write_bytes(made.private_key_pem.bytes())
            (tmp_path / "tls.crt").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))

        issue("localhost")
        return tmp_path, authority, issue

    @staticmethod
    def serve(engine, **arguments):
        return WebServer(application(engine), "127.0.0.1", 0, certificates=Certificates(**arguments))

    def test_https_answers_and_http_does_not(self, files):
        folder, _, _ = files
        with Engine() as engine:
            server = self.serve(engine, certificate=folder / "tls.crt", key=folder / "tls.key")
            try:
                trusted = ssl.create_default_context(cafile=folder / "ca.crt")
                base = f"localhost:{server.port}"
                assert httpx.get(f"https://{base}/health/live", verify=trusted).status_code == 200
                with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                    httpx.get(f"https://{base}/health/live")
                with pytest.raises(httpx.TransportError):
                    httpx.get(f"http://{base}/health/live")
            finally:
                server.stop()

    def test_a_renewed_certificate_is_used_by_new_connections(self, files, monkeypatch):
        monkeypatch.setattr(certificates, "CHECK_S", 0.05)
        folder, authority, _ = files
        with Engine() as engine:
            server = self.serve(engine, certificate=folder / "tls.crt", key=folder / "tls.key")
            try:
                trusted = ssl.create_default_context(cafile=folder / "ca.crt")

                def names(trusted=trusted) -> str:
                    with httpx.Client(verify=trusted) as client:
                        stream = client.stream("GET", f"https://localhost:{server.port}/health/live")
                        with stream as response:
                            found = response.extensions["network_stream"].get_extra_info("ssl_object").getpeercert()
                    return str(found["subjectAltName"])

                assert "renewed" not in names()
                made = authority.issue_cert("localhost", "renewed.example")
                (folder / "tls.key").write_bytes(b"half")
                time.sleep(0.2)
                assert "renewed" not in names()
                (folder / "tls.key").write_bytes(made.private_key_pem.bytes())
                (folder / "tls.crt").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
                deadline = time.monotonic() + 20.0
                while "renewed" not in names():
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            finally:
                server.stop()

    def test_clients_need_a_certificate_of_the_given_authority(self, files):
        folder, authority, _ = files
        paths = {"certificate": folder / "tls.crt", "key": folder / "tls.key", "client_ca": folder / "ca.crt"}
        with Engine() as engine:
            server = self.serve(engine, **paths)
            try:
                url = f"https://localhost:{server.port}/health/live"
                trusted = ssl.create_default_context(cafile=folder / "ca.crt")
                with pytest.raises(httpx.TransportError):
                    httpx.get(url, verify=trusted)
                authority.issue_cert("client.example").configure_cert(trusted)
                assert httpx.get(url, verify=trusted).status_code == 200
            finally:
                server.stop()


def test_tokens_are_long_and_differ():
    assert tokens.CHECK_S <= 1.0
    found = {new_token("a", Role.READ)[0] for _ in range(100)}
    assert len(found) == 100
    assert min(map(len, found)) >= 43
    with pytest.raises(TokenError):
        new_token("a b", Role.READ)
