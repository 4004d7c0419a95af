"""Settings, health, metrics, the loop: what every service gets."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request

import pytest

pytest.importorskip("structlog")

from penstock.http.security import Role, new_token
from penstock.http.web_server import WebServer
from penstock.log import LogError, TransientError
from penstock.log.kafka import KafkaLog
from penstock.runtime import ServiceSettings, SettingsError, Stopping, load, run
from penstock.runtime.health import Health
from penstock.runtime.health_routes import application
from penstock.runtime.logs import set_up
from penstock.runtime.loop import LEAVE_S, Loop
from penstock.runtime.metrics import Metrics, Tally


@pytest.fixture
def environment(monkeypatch):
    for name in ("BOOTSTRAP_SERVERS", "SHARDS", "CONFIG"):
        monkeypatch.delenv(f"PENSTOCK_{name}", raising=False)
    return monkeypatch


def test_settings_come_from_the_environment_before_the_file(environment, tmp_path):
    file = tmp_path / "penstock.toml"
    file.write_text(
        'bootstrap_servers = "a:1"\nshards = 7\n[kafka]\n"sasl.username" = "u"\n"ssl.ca.location" = "/ca"\n'
    )
    environment.setenv("PENSTOCK_CONFIG", str(file))
    environment.setenv("PENSTOCK_SHARDS", "3")
    environment.setenv("PENSTOCK_KAFKA_SASL_PASSWORD", "secret")
    environment.setenv("PENSTOCK_KAFKA_SASL_USERNAME", "v")
    settings = load(ServiceSettings)
    assert (settings.bootstrap_servers, settings.shards) == ("a:1", 3)
    assert settings.kafka_properties() == {"sasl.username": "v", "sasl.password": "secret", "ssl.ca.location": "/ca"}
    assert "sasl" not in repr(settings)


def test_a_folder_of_files_gives_properties_that_are_secret(environment, tmp_path):
    environment.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "a:1")
    folder = tmp_path / "kafka"
    (folder / "..2026_11_25").mkdir(parents=True)  # as Kubernetes mounts a Secret
    (folder / "sasl.password").write_text("of the file\n")
    (folder / "sasl.username").write_text("u")
    environment.setenv("PENSTOCK_SECRET_PROPERTIES_DIR", str(folder))
    environment.setenv("PENSTOCK_KAFKA_SASL_USERNAME", "v")
    assert load(ServiceSettings).kafka_properties() == {"sasl.password": "of the file", "sasl.username": "v"}
    environment.setenv("PENSTOCK_SECRET_PROPERTIES_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(SettingsError, match=r"PENSTOCK_SECRET_PROPERTIES_DIR: .*nowhere"):
        load(ServiceSettings).kafka_properties()


def test_other_machines_need_tokens_unless_all_are_admitted(environment, tmp_path):
    environment.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "a:1")
    assert load(ServiceSettings).tokens() is None  # on the loopback interface
    environment.setenv("PENSTOCK_HTTP_HOST", "0.0.0.0")
    with pytest.raises(SettingsError, match="PENSTOCK_HTTP_TOKENS_FILE, or PENSTOCK_HTTP_INSECURE=true"):
        load(ServiceSettings).tokens()
    environment.setenv("PENSTOCK_HTTP_INSECURE", "true")
    assert load(ServiceSettings).tokens() is None
    file = tmp_path / "tokens"
    environment.setenv("PENSTOCK_HTTP_TOKENS_FILE", str(file))
    with pytest.raises(SettingsError, match=f"PENSTOCK_HTTP_TOKENS_FILE: {file}"):
        load(ServiceSettings).tokens()
    token, line = new_token("ann", Role.READ)
    file.write_text(line)
    assert load(ServiceSettings).tokens().identify(token).name == "ann"


def test_an_issuer_requires_an_audience_and_roles(environment):
    def issuer(**values: str):
        for name, value in values.items():
            environment.setenv(f"PENSTOCK_HTTP_OIDC_{name}", value)
        return load(ServiceSettings).issuer()

    environment.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "a:1")
    assert issuer() is None
    with pytest.raises(SettingsError, match="PENSTOCK_HTTP_OIDC_ISSUER is missing"):
        issuer(AUDIENCE="penstock")
    with pytest.raises(SettingsError, match="no role"):
        issuer(ISSUER="https://issuer.example")
    with pytest.raises(SettingsError, match="'ops' is not VALUE=ROLE"):
        issuer(ROLES="ops")
    found = issuer(ROLES="ops=admin, staff=read", ROLE_CLAIM="groups", LEEWAY_S="5")
    assert (found.url, found.audience, found.role_claim) == ("https://issuer.example", "penstock", "groups")
    assert (found.roles, found.leeway_s) == ({"ops": Role.ADMIN, "staff": Role.READ}, 5.0)
    with pytest.raises(SettingsError, match="/nowhere"):
        issuer(JWKS="/nowhere")
    with pytest.raises(SettingsError, match="PENSTOCK_HTTP_OIDC_LEEWAY_S"):
        issuer(LEEWAY_S="-1")


def test_an_issuer_authenticates_other_machines(environment):
    values = {"BOOTSTRAP_SERVERS": "a:1", "HTTP_HOST": "0.0.0.0", "HTTP_OIDC_ISSUER": "https://issuer.example"}
    for name, value in values.items():
        environment.setenv(f"PENSTOCK_{name}", value)
    assert load(ServiceSettings).tokens() is None


def test_https_requires_a_certificate_and_its_key(environment):
    environment.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "a:1")
    settings = load(ServiceSettings)
    assert (settings.certificates(), settings.http_url(80)) == (None, "http://127.0.0.1:80")
    environment.setenv("PENSTOCK_HTTP_CERTIFICATE", "/tls.crt")
    with pytest.raises(SettingsError, match="PENSTOCK_HTTP_KEY"):
        load(ServiceSettings).certificates()
    environment.setenv("PENSTOCK_HTTP_KEY", "/tls.key")
    settings = load(ServiceSettings)
    assert str(settings.certificates().certificate) == "/tls.crt"
    assert settings.http_url(443) == "https://127.0.0.1:443"


def test_what_is_wrong_is_named(environment):
    environment.setenv("PENSTOCK_SHARDS", "0")
    environment.setenv("PENSTOCK_LOG_LEVEL", "loud")
    with pytest.raises(SettingsError) as caught:
        load(ServiceSettings)
    lines = str(caught.value).splitlines()
    assert {line.split(":")[0] for line in lines} == {
        "PENSTOCK_BOOTSTRAP_SERVERS",
        "PENSTOCK_SHARDS",
        "PENSTOCK_LOG_LEVEL",
    }


def test_a_missing_or_broken_file_is_named(environment, tmp_path):
    environment.setenv("PENSTOCK_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(SettingsError, match="no file"):
        load(ServiceSettings)
    (tmp_path / "none.toml").write_text("= nonsense")
    with pytest.raises(SettingsError):
        load(ServiceSettings)


def test_a_loop_that_hangs_is_not_alive():
    now = [0.0]
    health = Health(10, lambda: now[0])
    health.beat()
    assert health.alive() is None
    now[0] = 11
    assert health.alive() is not None
    assert "loop" in health.ready()


def test_readiness_asks_every_check():
    health = Health()
    assert health.ready() == {"loop": "starting"}
    health.beat()
    health.check("fine", lambda: None)
    health.check("unavailable", lambda: "no answer")
    health.check("broken", lambda: 1 / 0)  # type: ignore[arg-type,return-value]
    assert set(health.ready()) == {"unavailable", "broken"}


def fetch(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_health_and_metrics_are_served():
    health, metrics = Health(), Metrics("test")
    tally = Tally(metrics.events)
    server = WebServer(application(health, metrics, lambda: tally.reach(5)), "127.0.0.1", 0)
    try:
        assert fetch(server.port, "/health/ready")[0] == 503
        health.beat()
        assert fetch(server.port, "/health/ready") == (200, '{"ready":true,"wrong":{}}')
        health.check("broker", lambda: "unavailable")
        status, body = fetch(server.port, "/health/ready")
        assert (status, json.loads(body)["wrong"]) == (503, {"broker": "unavailable"})
        assert fetch(server.port, "/health/live")[0] == 200
        assert "penstock_events_total 5.0" in fetch(server.port, "/metrics")[1]
    finally:
        server.stop()


class ServiceCore:
    def __init__(self, *outcomes) -> None:
        self.outcomes = list(outcomes)
        self.steps = 0

    def step(self, timeout_s):
        self.steps += 1
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Stopping):
            outcome.stop()
            return False
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def close(self):
        pass


@pytest.fixture(autouse=True)
def logs_as_before():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def loop(stopping: Stopping, give_up_s: float = 100, now=None) -> Loop:
    logger = set_up("test", "1", "error", "json")
    return Loop(stopping, Health(), Metrics("test"), logger, give_up_s, **({} if now is None else {"now": now}))


def test_transient_failures_are_tried_over():
    stopping = Stopping()
    core = ServiceCore(True, TransientError("unavailable"), TransientError("unavailable"), True, stopping)
    loop(stopping).run(core, 0)
    assert core.steps == 5


def test_what_is_transient_too_long_ends_the_service():
    times = iter(range(0, 10_000, 40))
    core = ServiceCore(*[TransientError("unavailable")] * 10)
    with pytest.raises(TransientError):
        loop(Stopping(), 100, lambda: float(next(times))).run(core, 0)
    assert core.steps < 10


def test_a_fatal_error_ends_the_service_at_once():
    core = ServiceCore(LogError("unknown outcome"), True)
    with pytest.raises(LogError):
        loop(Stopping()).run(core, 0)
    assert core.steps == 1


class LeavingCore(ServiceCore):
    """It has left after so many steps, each of which takes some seconds."""

    def __init__(self, clock: list[float], seconds: float, steps: int, *outcomes) -> None:
        super().__init__(*outcomes)
        self.clock, self.seconds, self.until = clock, seconds, steps
        self.asked = False
        self.check = lambda: None

    def step(self, timeout_s):
        if self.asked:
            self.steps += 1
            for _ in range(10):
                self.clock[0] += self.seconds / 10
                self.check()
            return True
        return super().step(timeout_s)

    def leave(self):
        self.asked, self.steps = True, 0

    @property
    def left(self):
        return self.steps >= self.until


def leave(seconds: float, steps: int, *, checks: bool = False) -> tuple[LeavingCore, float]:
    """Run a loop whose end is asked for in its first step; return the core, and how long it took to end."""
    clock = [100.0]
    stopping = Stopping(lambda: clock[0])
    core = LeavingCore(clock, seconds, steps, stopping)
    if checks:
        core.check = stopping.check
    loop(stopping, now=lambda: clock[0]).run(core, 0)
    return core, clock[0] - 100.0


def test_a_service_that_ends_serves_until_it_is_replaced():
    core, took = leave(0.2, 4)
    assert (core.steps, took) == (4, pytest.approx(0.8))


def test_a_service_that_is_not_replaced_ends_in_time():
    core, took = leave(0.2, 1_000)
    assert LEAVE_S <= took <= LEAVE_S + 0.2
    assert not core.left


def test_the_time_for_a_handover_is_a_setting():
    clock = [100.0]
    stopping = Stopping(lambda: clock[0], leave_s=9.0)
    core = LeavingCore(clock, 0.5, 1_000, stopping)
    loop(stopping, now=lambda: clock[0]).run(core, 0)
    assert 9.0 <= clock[0] - 100.0 <= 9.5


def test_a_step_that_takes_too_long_is_broken_off_where_it_looks_at_the_time():
    """Ten slices of three seconds each: the end comes with the slice in which the time is over."""
    _, took = leave(30.0, 1_000, checks=True)
    assert LEAVE_S <= took <= LEAVE_S + 3.0


def test_what_is_transient_does_not_end_a_handover():
    clock = [100.0]
    stopping = Stopping(lambda: clock[0])
    core = LeavingCore(clock, 0.1, 3, stopping)
    failures = [TransientError("unavailable"), TransientError("unavailable")]

    def fail() -> None:
        if failures:
            raise failures.pop()

    core.check = fail
    loop(stopping, now=lambda: clock[0]).run(core, 0)
    assert core.left


def test_wrong_settings_found_when_a_service_opens_are_reported_as_such(environment, monkeypatch, capsys):
    def open_core(_):
        raise SettingsError("PENSTOCK_SHARDS is 4, but topic penstock.shards has 8 partitions")

    environment.setenv("PENSTOCK_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr(KafkaLog, "topics", lambda _: {})
    monkeypatch.setattr(Stopping, "listen", lambda _: None)
    assert run("test", ServiceSettings, open_core) == 2
    assert "PENSTOCK_SHARDS is 4" in capsys.readouterr().err
