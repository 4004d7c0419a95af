"""Look-ups by mutual TLS: who may connect, and what wrong files are called (ADR 71)."""

from __future__ import annotations

import datetime
import logging
import os
import pickle
import shutil
import socket
import ssl
import threading
import time
from contextlib import ExitStack, closing, suppress
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from integration.services.dictionary.test_flight_gate import GOOD, LIMITS, PREFACE, Terms, ended, frame, settles
from penstock.cli.app import main
from penstock.cli.cluster import certificate_files as command
from penstock.core import _native as native
from penstock.doctor import Level, running_cluster
from penstock.errors import StorageError
from penstock.http.security import certificates as renewing
from penstock.log import TransientError
from penstock.runtime.cluster_settings import ClientSettings
from penstock.runtime.settings import SettingsError
from penstock.services.dictionary import flight_gate
from penstock.services.dictionary.flight_server import DictionaryServer
from penstock.services.dictionary.service import DictionarySettings
from penstock.spark.numbering import encode_terms
from penstock.term_ids.flight_terms import FlightTerms
from penstock.term_ids.peer_certificates import PeerCertificates

NOW = datetime.datetime.now(datetime.UTC)
PAST = {"not_before": NOW - datetime.timedelta(days=9), "not_after": NOW - datetime.timedelta(days=1)}


class Authority:
    """A CA, and files of certificates that it has signed."""

    def __init__(self, folder):
        self._folder = folder
        folder.mkdir()
        self._ca = trustme.CA()
        self._ca.cert_pem.write_to_path(folder / "ca.crt")

    def issue(self, name: str, *hosts: str, **arguments) -> PeerCertificates:
        made = self._ca.issue_cert(*(hosts or ("localhost", "127.0.0.1")), **arguments)
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(b"".join(pem.bytes() for pem in made.cert_chain_pems))
        made.private_key_pem.write_to_path(key)
        return PeerCertificates(self._folder / "ca.crt", certificate, key)


@pytest.fixture
def ours(tmp_path):
    return Authority(tmp_path / "ours")


@pytest.fixture
def other(tmp_path):
    return Authority(tmp_path / "other")


@pytest.fixture
def server(ours):
    terms = Terms()
    made = DictionaryServer("grpc://127.0.0.1:0", lambda: terms, LIMITS, ours.issue("server"))
    yield made
    made.shutdown()


def location(server, host: str = "127.0.0.1") -> str:
    return f"grpc+tls://{host}:{server.port}"


def answers(server, certificates, host: str = "127.0.0.1") -> None:
    with closing(FlightTerms([location(server, host)], certificates)) as client:
        assert len(client.encode(GOOD)) == len(GOOD)


def context_of(certificates: PeerCertificates, own: bool = True) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=certificates.ca)
    made.set_alpn_protocols(["h2"])
    if own:
        made.load_cert_chain(certificates.certificate, certificates.key)
    return made


def raw(server, context: ssl.SSLContext) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    return context.wrap_socket(plain, server_hostname="localhost")


@pytest.fixture
def refused(server, caplog, monkeypatch):
    """Returns a function that has a connection refused, and returns the reason that the server logs. With TLS 1.3, a
    client learns of it when it reads.
    """
    monkeypatch.setattr(flight_gate, "_LOG_S", 0.0)

    def reason(context: ssl.SSLContext) -> str:
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING, "penstock.dictionary"),
            suppress(ssl.SSLError, ConnectionError),
            raw(server, context) as connection,
        ):
            connection.sendall(PREFACE + frame(4, 0))
            assert not connection.recv(100), "the server has answered"
        settles(server)
        return caplog.text.lower()

    return reason


# ---- who may connect
def test_a_client_with_a_certificate_of_the_ca_is_answered(server, ours):
    client = ours.issue("client")
    answers(server, client)
    answers(server, client, "localhost")
    with raw(server, context_of(client)) as connection:
        assert connection.version() == "TLSv1.3"
        connection.sendall(PREFACE + frame(4, 0))
        assert connection.recv(100)
    settles(server)


def test_a_client_without_a_certificate_is_refused(refused, ours):
    assert "did not return a certificate" in refused(context_of(ours.issue("client"), own=False))


def test_a_client_of_another_ca_is_refused(server, refused, ours, other):
    stranger = other.issue("client")
    with pytest.raises(TransientError):  # it does not accept the server either
        answers(server, stranger)
    mixed = context_of(ours.issue("client"), own=False)
    mixed.load_cert_chain(stranger.certificate, stranger.key)
    assert "certificate verify failed" in refused(mixed)


def test_a_client_whose_certificate_has_expired_is_refused(refused, ours):
    assert "certificate has expired" in refused(context_of(ours.issue("client", **PAST)))


def test_earlier_versions_of_tls_and_plain_connections_are_refused(server, refused, ours):
    client = ours.issue("client")
    earlier = context_of(client)
    earlier.maximum_version = ssl.TLSVersion.TLSv1_2
    assert "unsupported protocol" in refused(earlier)
    with closing(FlightTerms([f"grpc://127.0.0.1:{server.port}"])) as plain, pytest.raises(TransientError):
        plain.encode(GOOD)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        connection.sendall(PREFACE + frame(4, 0))
        assert ended(connection)
    answers(server, client)
    settles(server)


def test_a_client_refuses_a_server_with_another_name_or_ca(ours, other):
    client = ours.issue("client")
    for certificates in (ours.issue("named", "dictionary.example"), other.issue("server")):
        terms = Terms()
        server = DictionaryServer("grpc://127.0.0.1:0", lambda terms=terms: terms, LIMITS, certificates)
        try:
            with pytest.raises(TransientError):
                answers(server, client)
        finally:
            server.shutdown()


def test_requests_are_encrypted(server, ours):
    """A forwarder between client and server sees no text of a term."""
    seen = bytearray()
    term = (1, "urn:x:" + "recognizable" * 1_000, "", "")
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as stack:

        def forward(source, target):
            with suppress(OSError):  # the test ends
                while data := source.recv(1 << 16):
                    seen.extend(data)
                    target.sendall(data)

        def accept():
            near = stack.enter_context(listening.accept()[0])
            far = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=forward, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        port = listening.getsockname()[1]
        with closing(FlightTerms([f"grpc+tls://127.0.0.1:{port}"], ours.issue("client"))) as client:
            ids = client.encode([term])
            assert len(ids) == 1
        assert len(seen) > 2_000
        assert b"recognizable" not in seen


# ---- limits hold before and after the handshake
def test_connections_that_do_not_finish_the_handshake_are_limited(server, ours):
    hello = ssl.MemoryBIO(), ssl.MemoryBIO()
    handshake = context_of(ours.issue("client")).wrap_bio(*hello, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        handshake.do_handshake()
    text = hello[1].read()
    with ExitStack() as stack:
        stalled = [
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=10)) for _ in range(100)
        ]
        for number, connection in enumerate(stalled):
            try:
                connection.sendall((b"", text, text[:40])[number % 3])
            except OSError:
                assert number < 80, "only the oldest were closed"
        answers(server, ours.issue("client"))
        assert len(server._gate.connections) <= LIMITS.max_connections
        begin = time.monotonic()
        assert all(ended(connection) for connection in stalled)
        assert time.monotonic() - begin < 5
    settles(server)


def test_the_limits_of_requests_hold_within_tls(server, ours):
    context = context_of(ours.issue("client"))
    for text in (frame(0, 1, size=LIMITS.max_message_bytes + 1), b"".join(frame(0, s, b"x") for s in range(1, 100, 2))):
        with raw(server, context) as connection:
            connection.sendall(PREFACE + text)
            assert ended(connection)
    with raw(server, context) as connection:
        begin = time.monotonic()
        assert ended(connection), "no preface"
        assert time.monotonic() - begin < 5
    with closing(FlightTerms([location(server)], ours.issue("client"))) as client:
        terms = [(3, f"{number}" + "x" * 1_000, "urn:x:t", "") for number in range(6_000)]
        assert len(set(client.encode(terms).tolist())) == 6_000
    settles(server)


def test_garbage_within_and_instead_of_tls_ends_nothing(server, ours):
    context = context_of(ours.issue("client"))
    for _ in range(30):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(b"\x16\x03\x01" + os.urandom(500))
            assert ended(connection)
        with raw(server, context) as connection:
            connection.sendall(PREFACE + os.urandom(2_000))
    answers(server, ours.issue("client"))
    settles(server)


# ---- renewal
def test_changed_files_serve_new_connections_and_are_used_after_a_failure(tmp_path, ours, other, monkeypatch):
    monkeypatch.setattr(renewing, "CHECK_S", 0.05)
    for name in ("server", "client"):
        ours.issue(name), other.issue(name)
    both = (tmp_path / "ours/ca.crt").read_bytes() + (tmp_path / "other/ca.crt").read_bytes()
    (tmp_path / "both.crt").write_bytes(both)
    used = {}
    for name in ("server", "client"):
        used[name] = PeerCertificates(tmp_path / "both.crt", tmp_path / f"{name}.crt", tmp_path / f"{name}.key")
        for suffix in ("crt", "key"):
            shutil.copy(tmp_path / f"ours/{name}.{suffix}", tmp_path / f"{name}.{suffix}")
    terms = Terms()
    server = DictionaryServer("grpc://127.0.0.1:0", lambda: terms, LIMITS, used["server"])
    with closing(FlightTerms([location(server)], used["client"])) as client:
        client.encode(GOOD)
        for name in ("server", "client"):
            for suffix in ("crt", "key"):
                shutil.copy(tmp_path / f"other/{name}.{suffix}", tmp_path / f"{name}.{suffix}")
        only_other = PeerCertificates(tmp_path / "other/ca.crt", used["client"].certificate, used["client"].key)
        deadline = time.monotonic() + 10
        while True:
            try:
                answers(server, only_other)
                break
            except TransientError:
                assert time.monotonic() < deadline
        port = server.port
        server.shutdown()
        with pytest.raises(TransientError):
            client.find(GOOD)
        strict = PeerCertificates(tmp_path / "other/ca.crt", used["server"].certificate, used["server"].key)
        server = DictionaryServer(f"grpc://127.0.0.1:{port}", lambda: terms, LIMITS, strict)
        monkeypatch.setattr(Terms, "find", Terms.encode, raising=False)
        while True:
            try:
                assert len(client.find(GOOD)) == len(GOOD)
                break
            except TransientError:
                assert time.monotonic() < deadline
        server.shutdown()


# ---- files and settings
SERVER = {"bootstrap_servers": "b:1"}
CLIENT = {**SERVER, "dictionaries": "grpc+tls://d:1"}


def given(certificates: PeerCertificates) -> dict[str, object]:
    return {
        "tls_ca": certificates.ca,
        "tls_certificate": certificates.certificate,
        "tls_key": certificates.key,
    }


def test_a_dictionary_listens_for_other_machines_with_certificates_or_if_it_is_allowed_without(ours):
    good = given(ours.issue("server"))
    for listen in ("0.0.0.0:7879", "[::]:7879", "dictionary:7879", ":7879"):
        with pytest.raises(SettingsError, match=r"PENSTOCK_LISTEN is .*PENSTOCK_TLS_CA.*PENSTOCK_FLIGHT_INSECURE"):
            DictionarySettings(**SERVER, listen=listen).served_certificates()
        assert DictionarySettings(**SERVER, listen=listen, flight_insecure=True).served_certificates() is None
        assert DictionarySettings(**SERVER, listen=listen, **good).served_certificates() is not None
    for listen in ("127.0.0.1:0", "localhost:7879", "[::1]:7879"):
        assert DictionarySettings(**SERVER, listen=listen).served_certificates() is None


def wrong(ours, other, tmp_path):
    good, expired = ours.issue("good"), ours.issue("old", **PAST)
    stranger = other.issue("stranger")
    text, folder = tmp_path / "text", tmp_path / "folder"
    text.write_text("no certificate")
    folder.mkdir()
    none = tmp_path / "none"
    yield (none, good.certificate, good.key), r"^PENSTOCK_TLS_CA: \S*none: No such file"
    yield (good.ca, none, good.key), r"^PENSTOCK_TLS_CERTIFICATE: \S*none: No such file"
    yield (good.ca, good.certificate, none), r"^PENSTOCK_TLS_KEY: \S*none: No such file"
    yield (folder, good.certificate, good.key), r"^PENSTOCK_TLS_CA: \S*folder: Is a directory"
    yield (text, good.certificate, good.key), r"^PENSTOCK_TLS_CA: \S*text has no certificate in PEM"
    yield (good.ca, text, good.key), r"^PENSTOCK_TLS_CERTIFICATE: \S*text has no certificate in PEM"
    yield (good.ca, good.key, good.key), r"^PENSTOCK_TLS_CERTIFICATE: \S*good.key has no certificate in PEM"
    yield (good.ca, good.certificate, text), r"^PENSTOCK_TLS_KEY: \S*text has no private key"
    yield (good.ca, good.certificate, stranger.key), r"^PENSTOCK_TLS_KEY: \S*stranger.key is not the key of"
    yield (
        (stranger.ca, good.certificate, good.key),
        r"^PENSTOCK_TLS_CERTIFICATE: PENSTOCK_TLS_CA does not accept .*issuer",
    )
    yield (expired.ca, expired.certificate, expired.key), r"does not accept \S*old.crt: certificate has expired"
    yield (None, good.certificate, good.key), r"needed together: PENSTOCK_TLS_CA is not set"
    yield (good.ca, good.certificate, None), r"needed together: PENSTOCK_TLS_KEY is not set"


def test_wrong_files_are_named_with_their_setting(ours, other, tmp_path):
    for (ca, certificate, key), message in wrong(ours, other, tmp_path):
        files = {"tls_ca": ca, "tls_certificate": certificate, "tls_key": key}
        with pytest.raises(SettingsError, match=message):
            DictionarySettings(**SERVER, **files).served_certificates()
        with pytest.raises(SettingsError, match=message):
            ClientSettings(**CLIENT, **files).terms()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_cannot_be_read_is_named(ours):
    good = ours.issue("good")
    good.key.chmod(0)
    with pytest.raises(SettingsError, match=r"PENSTOCK_TLS_KEY: \S*good.key: Permission denied"):
        ClientSettings(**CLIENT, **given(good)).terms()


def test_addresses_say_whether_look_ups_are_encrypted(ours):
    good = ours.issue("good")
    with pytest.raises(SettingsError, match=r"grpc://d:1: with PENSTOCK_TLS_CERTIFICATE.*grpc\+tls://"):
        ClientSettings(**SERVER, dictionaries="grpc+tls://d:1,grpc://d:1", **given(good)).terms()
    with pytest.raises(SettingsError, match=r"grpc\+tls://d:1: without PENSTOCK_TLS_CERTIFICATE"):
        ClientSettings(**CLIENT).terms()
    assert ClientSettings(**CLIENT, **given(good)).locations() == ("grpc+tls://d:1",)


def test_a_certificate_for_clients_only_does_not_serve(tmp_path):
    """Certificates may be restricted to one use."""
    authority, key = command._authority(tmp_path)
    own = ec.generate_private_key(ec.SECP256R1())
    made = command._builder(command._name("client"), authority.subject, own, key, 1)
    made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
    (tmp_path / "client.crt").write_bytes(command._pem(command._signed(made, key)))
    (tmp_path / "client.key").write_bytes(command._pem_of_key(own))
    found = PeerCertificates(tmp_path / "ca.crt", tmp_path / "client.crt", tmp_path / "client.key")
    found.check(serves=False)
    with pytest.raises(StorageError, match=r"PENSTOCK_TLS_CERTIFICATE.*purpose"):
        found.check(serves=True)


def test_programs_that_are_no_services_read_the_environment(ours):
    good = ours.issue("good")
    named = {"PENSTOCK_TLS_CA": str(good.ca), "PENSTOCK_TLS_CERTIFICATE": str(good.certificate)}
    with pytest.raises(StorageError, match="PENSTOCK_TLS_KEY is not set"):
        PeerCertificates.of_environment(named)
    assert PeerCertificates.of_environment({**named, "PENSTOCK_TLS_KEY": str(good.key)}) == good
    assert PeerCertificates.of_environment({"PENSTOCK_TLS_CA": ""}) is None


def test_doctor_asks_dictionaries_with_certificates(server, ours, monkeypatch):
    monkeypatch.setattr(Terms, "find", Terms.encode, raising=False)
    [found] = running_cluster.dictionaries([location(server)], ours.issue("client"))
    assert found.level is Level.ok
    [found] = running_cluster.dictionaries([location(server)])
    assert found.level is Level.failure
    assert "PENSTOCK_TLS_CERTIFICATE" in found.text


def test_the_tasks_of_a_bulk_load_present_their_certificate(server, ours):
    """Spark sends the function and its arguments to its workers."""
    id_ = np.array([native.Dictionary().intern_many([GOOD[0]])[0]], np.uint64).view(np.int64)
    texts = {name: pa.array([text]) for name, text in zip(("lexical", "datatype", "lang"), GOOD[0][1:], strict=True)}
    batch = pa.record_batch({"part": pa.array([0]), "slot": pa.array(id_), "kind": pa.array([GOOD[0][0]]), **texts})
    task = partial(encode_terms, (location(server),), ours.issue("driver"), 0.0)
    count, found = pickle.loads(pickle.dumps(task))([batch])
    assert (count["entries"].to_pylist(), found["part"].to_pylist()) == ([1], [0])
    with pytest.raises(StorageError, match="PENSTOCK_TLS_CERTIFICATE"):
        list(encode_terms((location(server),), None, 0.0, [batch]))


# ---- penstock certificates
def test_the_command_makes_certificates_that_work(tmp_path, capsys):
    folder = tmp_path / "certificates"
    assert main(["certificates", str(folder), "--name", "dictionary-0", "--host", "localhost"]) == 0
    assert main(["certificates", str(folder), "--name", "adaptor", "--host", "adaptor.example"]) == 0
    printed = dict(line.split("=") for line in capsys.readouterr().out.splitlines()[-3:])
    client = PeerCertificates.of_environment(printed)
    serving = PeerCertificates(folder / "ca.crt", folder / "dictionary-0.crt", folder / "dictionary-0.key")
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.suffix == ".key"} == {
        "ca.key": 0o600,
        "dictionary-0.key": 0o600,
        "adaptor.key": 0o600,
    }
    terms = Terms()
    server = DictionaryServer("grpc://127.0.0.1:0", lambda: terms, LIMITS, serving)
    try:
        answers(server, client, "localhost")
    finally:
        server.shutdown()


def test_the_command_refuses_a_ca_that_it_cannot_use(tmp_path, capsys):
    assert main(["certificates", str(tmp_path)]) == 0
    assert main(["certificates", str(tmp_path), "--name", "ca"]) == 1
    (tmp_path / "ca.key").write_text("nothing")
    assert main(["certificates", str(tmp_path)]) == 1
    assert "ca.crt and ca.key cannot be read" in capsys.readouterr().err
