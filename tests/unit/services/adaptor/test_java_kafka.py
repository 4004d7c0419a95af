"""Properties of Kafka's Java clients from those of librdkafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.runtime import SettingsError
from penstock.services.adaptor.java_kafka import java_properties

if TYPE_CHECKING:
    from pathlib import Path

SASL = {"security.protocol": "SASL_SSL", "sasl.username": "me", "sasl.password": 'a "quoted\\ one'}


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize(("mechanism", "module"), [("PLAIN", "plain.Plain"), ("SCRAM-SHA-512", "scram.Scram")])
def test_user_and_password_become_a_jaas_configuration(name: str, mechanism: str, module: str):
    assert java_properties(SASL | {name: mechanism}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module}LoginModule required "
        r'username="me" password="a \"quoted\\ one";',
    }


def test_certificates_become_text(tmp_path: Path):
    for name in ("ca", "certificate"):
        (tmp_path / name).write_text(f"PEM of {name}")
    given = {
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "certificate"),
        "ssl.key.pem": "PEM of the key",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert java_properties(given) == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "PEM of ca",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "PEM of certificate",
        "ssl.keystore.key": "PEM of the key",
        "ssl.endpoint.identification.algorithm": "",
    }


def test_other_properties_are_omitted():
    assert java_properties({"linger.ms": "5", "debug": "all"}) == {}


def test_a_missing_file_is_an_error_that_names_the_property(tmp_path: Path):
    with pytest.raises(SettingsError, match=r"ssl\.ca\.location: .*nothing"):
        java_properties({"ssl.ca.location": str(tmp_path / "nothing")})
