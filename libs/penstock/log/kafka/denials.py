"""Errors for operations that the brokers' access lists (ACLs) deny."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError

from penstock.log.errors import DeniedError

if TYPE_CHECKING:
    from collections.abc import Mapping

DENIED: Final = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
}


def principal(properties: Mapping[str, object]) -> str:
    """Return the principal of a client with these librdkafka properties. For certificates and tokens, returns a
    description, because brokers can map the names in certificates and tokens to other principals.
    """
    if properties.get("sasl.username"):
        return f"User:{properties['sasl.username']}"
    protocol = str(properties.get("security.protocol", "plaintext")).upper()
    if protocol == "SSL" and properties.get("ssl.certificate.location"):
        return f"the owner of certificate {properties['ssl.certificate.location']}"
    return "this client's principal" if protocol.startswith("SASL") else "User:ANONYMOUS"


def denial(who: str, operation: str, resource: str, answer: KafkaError | None = None) -> DeniedError:
    """Return the error for an operation that `who` is not allowed to perform. `resource`: kind and name of the
    resource, as in "topic penstock.control".
    """
    said = "" if answer is None else f" ({answer.str()})"
    return DeniedError(f"{who} may not {operation} {resource}{said}: `penstock acls` prints the ACLs that are needed")
