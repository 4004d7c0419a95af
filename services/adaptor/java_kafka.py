"""Derives the properties of Kafka's Java clients from the properties of librdkafka. Spark uses the Java clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from penstock.runtime import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

_SAME = ("security.protocol", "sasl.mechanism", "ssl.key.password")  # names and values are equal in both clients
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_properties(librdkafka: Mapping[str, str]) -> dict[str, str]:
    """Return the Java clients' properties for authentication and TLS. `librdkafka`: the properties of librdkafka to
    convert. Properties for other purposes are omitted.

    Certificates and keys become text in the properties, so that Spark's executors need no files. SettingsError if a
    file cannot be read.
    """
    given = dict(librdkafka)
    if "sasl.mechanisms" in given:  # another name of the property in librdkafka
        given.setdefault("sasl.mechanism", given["sasl.mechanisms"])
    found = {name: given[name] for name in _SAME if name in given}
    module = _MODULES.get(given.get("sasl.mechanism", ""))
    if module is not None and "sasl.username" in given and "sasl.password" in given:
        user, password = _quoted(given["sasl.username"]), _quoted(given["sasl.password"])
        found["sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if authorities := _pem(given, "ssl.ca"):
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    chain, key = _pem(given, "ssl.certificate"), _pem(given, "ssl.key")
    if chain and key:
        found |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    if (algorithm := given.get("ssl.endpoint.identification.algorithm")) is not None:
        found["ssl.endpoint.identification.algorithm"] = "" if algorithm == "none" else algorithm
    return found


def _quoted(text: str) -> str:
    """Return a text as a quoted value of a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pem(given: Mapping[str, str], name: str) -> str:
    """Return the PEM text of a property. This is the content of the file in `NAME.location`, or else the value of
    `NAME.pem`. Empty if neither is set. SettingsError if the file cannot be read.
    """
    if location := given.get(f"{name}.location"):
        try:
            return Path(location).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"{name}.location: {error}") from error
    return given.get(f"{name}.pem", "")
