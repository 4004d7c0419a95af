"""A broker that speaks TLS and asks who one is (SASL): what settings pass through is all that a service needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.broker import Broker
from penstock.broker.ports import free_port
from penstock.log import START, Partition, Record, Topic
from penstock.log.kafka import KafkaLog
from penstock.runtime import ServiceSettings, load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("broker")
BOUND_S = 90.0
PASSWORD = "not a secret"


@pytest.fixture(scope="module")
def secure(broker_jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a service that may use a broker of its own, by SASL over TLS."""
    del broker_jars  # only for its means
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate")
    folder, port = tmp_path_factory.mktemp("secure"), free_port()
    store = _certificate(openssl, folder)
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    properties = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{login} user_penstock="{PASSWORD}";',
    }
    with Broker(folder / "node", listeners={"SASL_SSL": port}, properties=properties):
        yield {
            "PENSTOCK_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}",
            "PENSTOCK_KAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "PENSTOCK_KAFKA_SSL_CA_LOCATION": str(folder / "certificate.pem"),
            "PENSTOCK_KAFKA_SASL_MECHANISM": "PLAIN",
            "PENSTOCK_KAFKA_SASL_USERNAME": "penstock",
            "PENSTOCK_KAFKA_SASL_PASSWORD": PASSWORD,
        }


def _certificate(openssl: str, folder: Path) -> Path:
    key, certificate, both = folder / "key.pem", folder / "certificate.pem", folder / "both.pem"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    made = ["-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, "req", "-x509", *named, *made], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    return both


def opened(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> KafkaLog:
    """A log as a service with that environment opens it."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings = load(ServiceSettings)
    return KafkaLog(settings.bootstrap_servers, settings.kafka_properties())


def test_records_and_transactions_go_over_tls(secure: dict[str, str], monkeypatch: pytest.MonkeyPatch, topic_prefix):
    log = opened(monkeypatch, secure)
    try:
        topic = f"{topic_prefix}.secure"
        log.create([Topic(topic)])
        log.writer().append([Record(topic, b"one")])
        log.transactional(topic_prefix).commit([Record(topic, b"two")], {Partition(topic): 1}, topic_prefix)
        reader, found, deadline = log.reader({Partition(topic): START}), [], time.monotonic() + BOUND_S
        while len(found) < 2 and time.monotonic() < deadline:
            found += [message.value for message in reader.poll(10, 0.5)]
        assert found == [b"one", b"two"]
        assert log.committed(topic_prefix, [Partition(topic)]) == {Partition(topic): 1}
    finally:
        log.close()


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("PENSTOCK_KAFKA_SASL_PASSWORD", "another", "uthentication failed"),
        ("PENSTOCK_KAFKA_SSL_CA_LOCATION", "/etc/ssl/certs/ca-certificates.crt", "certificate verify failed"),
    ],
)
def test_a_refused_client_gets_the_reason(
    secure: dict[str, str], monkeypatch: pytest.MonkeyPatch, setting: str, value: str, message: str
):
    log = opened(monkeypatch, secure | {setting: value})
    try:
        deadline, last_error = time.monotonic() + BOUND_S, ""
        while message not in last_error and time.monotonic() < deadline:
            last_error = log.last_error() or "nothing"
        assert message in last_error
    finally:
        log.close()


def test_a_service_becomes_ready_and_ends_in_order(secure: dict[str, str], topic_prefix, tmp_path: Path):
    port = free_port()
    own = {"PENSTOCK_PREFIX": topic_prefix, "PENSTOCK_HTTP_PORT": str(port), "PENSTOCK_INSTANCE": "d"}
    command = [sys.executable, "-m", "penstock.services.dispatcher.service"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=os.environ | secure | own, stdout=log, stderr=log)
    try:
        deadline, ready = time.monotonic() + BOUND_S, {}
        while not ready.get("ready") and time.monotonic() < deadline:
            assert process.poll() is None, (tmp_path / "log").read_text()
            time.sleep(0.2)
            ready = _ready(port)
        assert ready == {"ready": True, "wrong": {}}
        process.terminate()
        assert process.wait(BOUND_S) == 0
    finally:
        process.kill()
        process.wait()


def _ready(port: int) -> dict[str, object]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=10) as answer:
            found: dict[str, object] = json.load(answer)
            return found
    except OSError as error:  # not there yet, or 503
        return {"ready": False, "why": str(error)}
