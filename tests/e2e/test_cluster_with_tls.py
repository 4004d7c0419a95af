"""A cluster whose dictionaries and their clients authenticate by certificates of `penstock certificates`."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

pytest.importorskip("confluent_kafka")

from penstock import Client
from penstock.cli.app import main
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.log import TransientError
from penstock.term_ids.flight_terms import FlightTerms
from penstock.term_ids.peer_certificates import PeerCertificates
from support.cluster_load import BOUND_S, small

pytestmark = pytest.mark.xdist_group("broker")
S, EX = "http://x/s", "http://x/"
ROWS = f"""SELECT ?label FROM STREAM <{S}> [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored>
WHERE {{ ?road <{EX}speed> ?speed ; <{EX}label> ?label }}"""


def test_a_cluster_answers_over_tls_and_strangers_learn_nothing(broker, topic_prefix, tmp_path, monkeypatch):
    folder = tmp_path / "certificates"
    add = LocalCluster._add

    def add_with_tls(self, name, module, settings):
        assert main(["certificates", str(folder), "--name", name, "--host", "127.0.0.1"]) == 0
        own = {
            "PENSTOCK_TLS_CA": str(folder / "ca.crt"),
            "PENSTOCK_TLS_CERTIFICATE": str(folder / f"{name}.crt"),
            "PENSTOCK_TLS_KEY": str(folder / f"{name}.key"),
        }
        encrypted = {key: value.replace("grpc://", "grpc+tls://") for key, value in settings.items()}
        add(self, name, module, encrypted | own)

    monkeypatch.setattr(LocalCluster, "_add", add_with_tls)
    with small(broker.bootstrap_servers, topic_prefix, tmp_path / "c", stores=1) as cluster:
        [address] = cluster.services["adaptor-0"].settings["PENSTOCK_DICTIONARIES"].split(",")
        with Client(broker.bootstrap_servers, cluster.url, prefix=topic_prefix) as client:
            client.load(f'<{EX}a> <{EX}label> "A" .'.encode(), format="turtle")
            client.declare_stream(S, timing=[EX + "speed"], batch_ms=100)
            query = client.register(ROWS, name="rows")
            client.push(S, f"<{EX}a> <{EX}speed> 5 .", 1_500, format="turtle")
            client.advance(None, 4_000)
            found, deadline = [], time.monotonic() + BOUND_S
            while not found and time.monotonic() < deadline:
                found = [str(row["label"]) for evaluation in query.poll() for row in evaluation.answer]
                time.sleep(0.1)
            assert found == ["A"]
        plain = address.replace("grpc+tls", "grpc")
        for location, certificates in ((plain, None), (address, strangers(tmp_path / "other"))):
            with closing(FlightTerms([location], certificates)) as terms, pytest.raises(TransientError):
                terms.find([(1, EX + "a", "", "")])


def strangers(folder) -> PeerCertificates:
    assert main(["certificates", str(folder)]) == 0
    return PeerCertificates(folder / "ca.crt", folder / "tls.crt", folder / "tls.key")
