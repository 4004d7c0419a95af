"""The settings of a store and a query engine for TLS between them."""

from __future__ import annotations

import pytest

pytest.importorskip("confluent_kafka")

from penstock.runtime.settings import SettingsError
from penstock.services.query_engine.service import QueryEngineSettings
from penstock.services.store.service import StoreSettings
from support.plane_regions import peer_certificates

COMMON = {"bootstrap_servers": "b:1", "shards": 2, "instance": "store-0", "dictionaries": "grpc+tls://d:1"}


@pytest.fixture
def files(tmp_path):
    found = peer_certificates(tmp_path / "certificates", "tls", "store-0.example")
    return {"tls_ca": found.ca, "tls_certificate": found.certificate, "tls_key": found.key}


def store(tmp_path, **settings):
    return StoreSettings(**COMMON, secret_file=tmp_path / "secret", **settings)


def test_a_store_listens_for_other_machines_with_certificates_or_if_it_is_allowed_without(tmp_path, files):
    for listen in ("0.0.0.0:7880", "store-0.example:7880"):
        with pytest.raises(SettingsError, match=r"PENSTOCK_LISTEN is .*PENSTOCK_TLS_CA.*PENSTOCK_DATA_INSECURE"):
            store(tmp_path, listen=listen).served_tls()
        assert store(tmp_path, listen=listen, data_insecure=True).served_tls() is None
    assert store(tmp_path, listen="127.0.0.1:0").served_tls() is None
    named = store(tmp_path, listen="0.0.0.0:7880", advertised_host="store-0.example", **files)
    assert named.served_tls() is not None


def test_the_certificate_of_a_store_names_the_host_that_engines_reach(tmp_path, files):
    with pytest.raises(SettingsError, match=r"PENSTOCK_TLS_CERTIFICATE: .*[Hh]ostname mismatch"):
        store(tmp_path, listen="0.0.0.0:7880", advertised_host="store-1.example", **files).served_tls()


def test_rdma_with_certificates_is_a_decision(tmp_path, files):
    host = {"listen": "0.0.0.0:7880", "advertised_host": "store-0.example"}
    with pytest.raises(SettingsError, match=r"PENSTOCK_RDMA_REQUIRED.*PENSTOCK_RDMA_UNENCRYPTED"):
        store(tmp_path, **host, rdma_required=True, **files).served_tls()
    assert store(tmp_path, **host, rdma_required=True, rdma_unencrypted=True, **files).served_tls() is not None
    with pytest.raises(SettingsError, match=r"PENSTOCK_TRANSPORT.*PENSTOCK_RDMA_UNENCRYPTED"):
        QueryEngineSettings(**COMMON, transport="rdma", **files).stores_tls()
    assert QueryEngineSettings(**COMMON, transport="auto", **files).stores_tls() is not None
