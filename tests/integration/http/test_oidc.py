"""JWTs of an issuer that runs: discovery, rotation, outages, and the doors of `penstock serve` and of services."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import ssl
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import httpx
import pytest
import trustme
from starlette.responses import PlainTextResponse
from starlette.routing import Route

pytest.importorskip("structlog")

from penstock.errors import UnavailableError
from penstock.http.security import Identity, Role
from penstock.http.security.identities import RefusedTokenError
from penstock.http.security.issuer import Issuer, IssuerSettings
from penstock.http.security.key_sets import IssuerError, KeyUrl
from penstock.log.kafka import KafkaLog
from penstock.runtime import ServiceSettings, Stopping, run
from support.oidc import AUDIENCE, LocalIssuer, SigningKey, key_set

DISCOVERY = "/.well-known/openid-configuration"
ROLES = {"staff": Role.READ, "apps": Role.WRITE, "ops": Role.ADMIN}
FIRST, SECOND = SigningKey("first", "RS256"), SigningKey("second", "ES256")
BOUND_S = 30.0


@contextmanager
def trusting(local: LocalIssuer, *, retry_s: float = 0.2, refresh_s: float = 300.0, **settings):
    """An issuer's client with short intervals."""
    made = IssuerSettings(local.url, AUDIENCE, ROLES, **settings)
    source = made.source()
    source.retry_s, source.refresh_s = retry_s, refresh_s
    issuer = Issuer(made, source)
    try:
        yield issuer
    finally:
        issuer.close()


def owner(issuer: Issuer, token: str) -> Identity:
    return asyncio.run(issuer.owner(token))


def eventually(check) -> None:
    deadline = time.monotonic() + BOUND_S
    while True:
        try:
            check()
        except (AssertionError, UnavailableError, RefusedTokenError, httpx.TransportError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def test_keys_are_found_by_discovery():
    with LocalIssuer(FIRST) as local, trusting(local) as issuer:
        assert owner(issuer, local.token()) == Identity("oidc:alice", Role.READ)
        for _ in range(20):
            owner(issuer, local.token())
        assert local.requests == [DISCOVERY, "/keys"]


def test_each_subject_has_the_limits_of_the_settings_until_its_token_expires():
    with LocalIssuer(FIRST) as local, trusting(local, rate=5.0, max_body_bytes=1_000, leeway_s=10.0) as issuer:
        found = owner(issuer, local.token(exp=int(time.time()) + 100))
        assert (found.rate, found.max_body_bytes) == (5.0, 1_000)
        assert 105 < found.expires_s - time.time() <= 110


def test_keys_of_a_url_need_no_discovery():
    with LocalIssuer(FIRST) as local, trusting(local, jwks=f"{local.url}/keys") as issuer:
        assert owner(issuer, local.token()).name == "oidc:alice"
        assert local.requests == ["/keys"]


def test_a_new_key_is_fetched_with_its_first_token_and_an_old_one_ends():
    with LocalIssuer(FIRST) as local, trusting(local) as issuer:
        former = local.token()
        owner(issuer, former)
        time.sleep(0.25)
        local.keys = [SECOND, FIRST]
        assert owner(issuer, local.token()).name == "oidc:alice"
        assert owner(issuer, former).name == "oidc:alice"
    with LocalIssuer(FIRST) as local, trusting(local, refresh_s=0.2) as issuer:
        former = local.token()
        owner(issuer, former)
        local.keys = [SECOND]

        eventually(lambda: _fails(issuer, former, RefusedTokenError, "not among the issuer's"))
        assert owner(issuer, local.token()).name == "oidc:alice"


def test_unknown_keys_cause_at_most_one_fetch_in_an_interval():
    with LocalIssuer(FIRST) as local, trusting(local, retry_s=60.0) as issuer:
        owner(issuer, local.token())
        for _ in range(50):
            with pytest.raises(RefusedTokenError, match=r"fetched again after [0-9]+ s"):
                owner(issuer, local.token(SECOND))
        assert len(local.requests) == 2
    with LocalIssuer(FIRST) as local, trusting(local, retry_s=0.5) as issuer:
        owner(issuer, local.token())
        time.sleep(0.6)
        local.pause_s = 0.1
        before, unknown = len(local.requests), local.token(SECOND)

        def refused(_: int) -> None:
            with pytest.raises(RefusedTokenError):
                owner(issuer, unknown)

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(refused, range(16)))
        assert len(local.requests) - before == 2  # discovery and keys, once


def test_former_keys_stay_in_use_while_the_issuer_is_down(caplog):
    local = LocalIssuer(FIRST)
    with trusting(local, refresh_s=0.2) as issuer:
        known, unknown = local.token(), local.token(SECOND)
        owner(issuer, known)
        local.close()
        eventually(lambda: _down(issuer, unknown))
        assert owner(issuer, known).name == "oidc:alice"
        assert issuer.last_error() is None  # the service stays ready
        assert local.url in caplog.text
        with LocalIssuer(FIRST, SECOND, port=local.port):
            eventually(lambda: owner(issuer, unknown))


def test_a_process_starts_without_the_issuer():
    local = LocalIssuer(FIRST)
    local.close()
    with trusting(local) as issuer:
        eventually(lambda: _down(issuer, local.token()))
        assert local.url in issuer.last_error()
        with LocalIssuer(FIRST, port=local.port):
            eventually(lambda: owner(issuer, local.token()))
            assert issuer.last_error() is None


def test_a_slow_issuer_delays_no_request_with_a_known_key(monkeypatch):
    with LocalIssuer(FIRST) as local, trusting(local, retry_s=0.05) as issuer:
        known, unknown = local.token(), local.token(SECOND)
        owner(issuer, known)
        monkeypatch.setattr("penstock.http.security.issuer._WAIT_S", 0.3)
        time.sleep(0.1)
        local.pause_s = 3.0
        waiting = threading.Thread(target=_down, args=(issuer, unknown))
        waiting.start()
        time.sleep(0.1)
        began = time.monotonic()
        for _ in range(10):
            owner(issuer, known)
        assert time.monotonic() - began < 1.0
        waiting.join(BOUND_S)
        assert time.monotonic() - began < 2.8  # 503 before the issuer has answered


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"/keys": 500}, "status 500"),
        ({"/keys": 302}, "status 302"),
        ({"/keys": b"<html>"}, "no JSON"),
        ({"/keys": b"[]"}, "no JSON object"),
        ({"/keys": b'{"keys": []}'}, "no key"),
        ({"/keys": b" " * (2 << 20)}, "longer than"),
        ({DISCOVERY: 404}, "status 404"),
        ({DISCOVERY: b"{}"}, "is of the issuer None"),
        ({DISCOVERY: b'{"issuer": "https://evil.example"}'}, "is of the issuer 'https://evil.example'"),
        ({DISCOVERY: "no keys"}, "no `jwks_uri`"),
        ({DISCOVERY: "http://10.0.0.1/keys"}, "must begin with https://"),
        ({DISCOVERY: "file:///etc/passwd"}, "no URL"),
        ({DISCOVERY: "keys"}, "no URL"),
    ],
)
def test_an_issuer_that_answers_wrongly_gives_no_keys(answers, expected):
    with LocalIssuer(FIRST) as local:
        for path, answer in answers.items():
            keys = {} if answer == "no keys" else {"jwks_uri": answer}
            discovery = {"issuer": local.url} | keys if isinstance(answer, str) else None
            local.answer[path] = answer if discovery is None else json.dumps(discovery).encode()
        with pytest.raises(IssuerError) as caught:
            KeyUrl(local.url).fetch()
        assert expected in str(caught.value)


def test_former_keys_survive_a_wrong_answer():
    with LocalIssuer(FIRST) as local, trusting(local, refresh_s=0.05) as issuer:
        owner(issuer, local.token())
        local.answer["/keys"] = b'{"keys": []}'
        count = len(local.requests)
        eventually(lambda: _asked(local, count + 6))
        assert owner(issuer, local.token()).name == "oidc:alice"


def test_the_certificate_of_the_issuer_is_checked(tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.crt")
    with LocalIssuer(FIRST) as local:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost", "127.0.0.1").configure_cert(context)
        local._server.socket = context.wrap_socket(local._server.socket, server_side=True)
        url = f"https://localhost:{local.port}"
        local.answer["/keys"] = key_set(FIRST)
        local.answer[DISCOVERY] = json.dumps({"issuer": url, "jwks_uri": f"{url}/keys"}).encode()
        assert list(KeyUrl(url, ca=tmp_path / "ca.crt").fetch()) == ["first"]
        with pytest.raises(IssuerError, match="CERTIFICATE_VERIFY_FAILED"):
            KeyUrl(url).fetch()
        local.answer[DISCOVERY] = json.dumps(
            {"issuer": url, "jwks_uri": f"http://127.0.0.1:{local.port}/keys"}
        ).encode()
        with pytest.raises(IssuerError, match="must begin with https://"):
            KeyUrl(url, ca=tmp_path / "ca.crt").fetch()


class TestServe:
    """`penstock serve` in a process of its own."""

    @pytest.fixture
    def local(self):
        with LocalIssuer(FIRST) as made:
            yield made

    @pytest.fixture
    def served(self, local, tmp_path):
        options = ["--oidc-issuer", local.url, "--oidc-audience", AUDIENCE, "--oidc-role-claim", "realm.roles"]
        options += ["--oidc-role", "staff=read", "--oidc-role", "ops=admin", "--audit-log", str(tmp_path / "audit")]
        command = [sys.executable, "-m", "penstock", "serve", "--host", "0.0.0.0", "--port", "0", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            line = process.stdout.readline()
            found = re.search(r":(\d+)/", line)
            assert found, line + process.stdout.read()
            yield f"http://127.0.0.1:{found[1]}"
        finally:
            process.terminate()
            process.communicate(timeout=BOUND_S)
        assert process.returncode == 0

    def test_requests_need_a_token_of_the_issuer(self, local, served, tmp_path):
        def update(token: str | None) -> httpx.Response:
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            return httpx.post(f"{served}/update", content="INSERT DATA { <urn:a> <urn:b> 1 }", headers=headers)

        assert httpx.get(f"{served}/health/live").status_code == 200
        assert update(None).status_code == 401
        assert update(local.token(realm={"roles": ["staff"]})).status_code == 403
        assert update(local.token(sub="bob", realm={"roles": ["ops"]})).status_code == 204
        assert update(local.token(SECOND)).status_code == 401
        assert update(local.token(filling="x" * 20_000)).status_code == 401
        lines = [json.loads(line) for line in (tmp_path / "audit").read_text().splitlines()]
        users = [(line["user"], line["status"]) for line in lines]
        assert users == [("", 401), ("oidc:alice", 403), ("oidc:bob", 204), ("", 401), ("", 401)]

    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (["--oidc-audience", "a"], "--oidc-issuer is missing"),
            (["--oidc-issuer", "https://x.example", "--oidc-role", "a=read"], "audience is missing"),
            (["--oidc-issuer", "https://x.example", "--oidc-audience", "a"], "no role"),
            (["--oidc-issuer", "https://x.example", "--oidc-audience", "a", "--oidc-role", "a=root"], "VALUE=ROLE"),
            (["--oidc-issuer", "http://x.example", "--oidc-audience", "a", "--oidc-role", "a=read"], "https://"),
        ],
    )
    def test_wrong_options_are_named(self, options, expected):
        command = [sys.executable, "-m", "penstock", "serve", "--port", "0", *options]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=BOUND_S, env=os.environ | {"COLUMNS": "300"}
        )
        assert done.returncode == 2
        assert expected in done.stderr


class TestServices:
    """The process of every service, with a core that only steps."""

    @pytest.fixture(autouse=True)
    def logs_as_before(self):
        root = logging.getLogger()
        handlers, level = list(root.handlers), root.level
        yield
        root.handlers[:] = handlers
        root.setLevel(level)

    @pytest.fixture
    def serve(self, monkeypatch):
        monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "127.0.0.1:1")
        monkeypatch.setattr(KafkaLog, "topics", lambda _: {})
        monkeypatch.setattr(Stopping, "listen", lambda _: None)

        async def change(_):
            return PlainTextResponse("changed")

        class Core:
            def __init__(self, context, use) -> None:
                self.context, self.use, self.urls, self.failure = context, use, [], None
                context.listening.append(self.urls.append)
                context.routes.append(Route("/update", change, methods=["POST"]))

            def step(self, timeout_s):
                if self.urls:
                    try:
                        self.use(self.urls[0].replace("0.0.0.0", "127.0.0.1"))
                    finally:
                        self.context.stopping.stop()
                return False

            def close(self):
                pass

        def serve(use) -> int:
            return run("test", ServiceSettings, lambda context: Core(context, use))

        return serve

    def test_requests_need_a_token_of_the_issuer(self, serve, monkeypatch, capfd):
        with LocalIssuer(FIRST) as local:
            values = {"ISSUER": local.url, "AUDIENCE": AUDIENCE, "ROLES": "staff=read, ops=admin"}
            for name, value in values.items():
                monkeypatch.setenv(f"PENSTOCK_HTTP_OIDC_{name}", value)
            monkeypatch.setenv("PENSTOCK_HTTP_HOST", "0.0.0.0")
            monkeypatch.setenv("PENSTOCK_ADVERTISED_HOST", "127.0.0.1")
            found = []

            def use(url: str) -> None:
                for token in (local.token(roles=["ops"]), local.token(), local.token(aud="other")):
                    headers = {"authorization": f"Bearer {token}"}
                    found.append(httpx.post(f"{url}/update", headers=headers).status_code)
                found.append(httpx.get(f"{url}/metrics").status_code)
                found.append(httpx.get(f"{url}/health/ready").json()["wrong"].get("issuer"))

            assert serve(use) == 0
            assert found == [200, 403, 401, 401, None]
        written = "".join(capfd.readouterr())
        assert '"user": "oidc:alice"' in written

    def test_a_service_without_keys_is_not_ready(self, serve, monkeypatch):
        local = LocalIssuer(FIRST)
        local.close()
        for name, value in {"ISSUER": local.url, "AUDIENCE": AUDIENCE, "ROLES": "ops=admin"}.items():
            monkeypatch.setenv(f"PENSTOCK_HTTP_OIDC_{name}", value)
        found = []

        def use(url: str) -> None:
            response = httpx.post(f"{url}/update", headers={"authorization": f"Bearer {local.token(roles=['ops'])}"})
            found.append((response.status_code, response.json()["error"], response.headers["retry-after"]))
            found.append(httpx.get(f"{url}/health/ready").json()["wrong"]["issuer"])

        assert serve(use) == 0
        assert found[0] == (503, "UnavailableError", "10")
        assert local.url in found[1]


def _down(issuer: Issuer, token: str) -> None:
    _fails(issuer, token, UnavailableError, "retry later")


def _fails(issuer: Issuer, token: str, kind: type[Exception], expected: str) -> None:
    """An assertion error where the token is accepted, or fails in another way: `eventually` tries again."""
    failure: Exception | None = None
    try:
        owner(issuer, token)
    except (UnavailableError, RefusedTokenError) as error:
        failure = error
    assert isinstance(failure, kind), failure
    assert expected in str(failure)


def _asked(local: LocalIssuer, count: int) -> None:
    assert len(local.requests) >= count
