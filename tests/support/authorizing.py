"""A broker that enforces ACLs (StandardAuthorizer), with SASL principals and a record of what they were allowed."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from penstock.acls import Principal, required_acls
from penstock.broker import Broker
from penstock.broker.broker import _JVM
from penstock.broker.ports import free_port
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.log.kafka import KafkaLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest

    from penstock.acls import Acl, Cluster

PASSWORD = "one-password-of-the-broker-4711"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
}
_LOG = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %p %c %m%n
appender.access.type = File
appender.access.name = access
appender.access.fileName = {path}
appender.access.layout.type = PatternLayout
appender.access.layout.pattern = %m%n
logger.access.name = kafka.authorizer.logger
logger.access.level = trace
logger.access.additivity = false
logger.access.appenderRef.access.ref = access
"""
_DECISION = re.compile(
    r"Principal = (?P<user>\S+) is (?P<outcome>Allowed|Denied) operation = (?P<operation>\w+) "
    r"from host = \S+ on resource = (?P<kind>\w+):(?P<pattern>\w+):(?P<name>.*?) for request = (?P<request>\w+)"
)


class Decision(NamedTuple):
    """What the authorizer has decided."""

    user: str
    outcome: str
    operation: str
    kind: str
    name: str
    request: str


class AuthorizingBroker:
    """The broker. `bootstrap_servers` is the door for the cluster's principals, `admin` the one for the tests.

    `certificates`: a directory with ca.crt, and broker.crt and broker.key, with which the door for principals has TLS.
    """

    def __init__(self, folder: Path, prefix: str, certificates: Path | None = None) -> None:
        self.prefix, self._port, self._access = prefix, free_port(), folder / "access.log"
        self._certificates = certificates
        self._protocol = "SASL_PLAINTEXT" if certificates is None else "SASL_SSL"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "log4j2.properties").write_text(_LOG.format(path=self._access))
        users = " ".join(f'user_{self.user(principal)}="{PASSWORD}"' for principal in Principal)
        properties = {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "allow.everyone.if.no.acl.found": "false",
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{self._protocol.lower()}.plain.sasl.jaas.config": f"{_LOGIN} {users};",
            **self._key_store(folder),
        }
        jvm = (*_JVM, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}")
        self.broker = Broker(folder / "node", jvm=jvm, listeners={self._protocol: self._port}, properties=properties)

    def _key_store(self, folder: Path) -> dict[str, str]:
        if self._certificates is None:
            return {}
        both = folder / "broker.pem"
        both.touch(0o600)
        both.write_text("".join((self._certificates / f"broker.{end}").read_text() for end in ("key", "crt")))
        return {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(both)}

    @property
    def port(self) -> int:
        """The port of the door for principals."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def user(self, principal: Principal) -> str:
        return f"{self.prefix}-{principal}"

    def properties(self, principal: Principal) -> dict[str, str]:
        """librdkafka properties of a principal."""
        found = {
            "security.protocol": self._protocol,
            "sasl.mechanism": "PLAIN",
            "sasl.username": self.user(principal),
            "sasl.password": PASSWORD,
        }
        return found if self._certificates is None else found | {"ssl.ca.location": str(self._certificates / "ca.crt")}

    def log(self, principal: Principal) -> KafkaLog:
        return KafkaLog(self.bootstrap_servers, self.properties(principal), give_up_s=20)

    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})

    def bindings(self, principal: Principal, acl: Acl) -> list[AclBinding]:
        """The ACL's operations as Kafka's own bindings."""
        pattern = ResourcePatternType.PREFIXED if acl.prefixed else ResourcePatternType.LITERAL
        return [
            AclBinding(
                _KINDS[acl.kind],
                acl.name,
                pattern,
                f"User:{self.user(principal)}",
                "*",
                AclOperation[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).upper()],
                AclPermissionType.ALLOW,
            )
            for word in acl.operations
        ]

    def allow(self, bindings: list[AclBinding]) -> None:
        admin = self.admin()  # it must live as long as its requests
        for future in admin.create_acls(bindings).values():
            future.result(30)

    def allow_all(self, cluster: Cluster) -> None:
        """Exactly what `penstock acls` prints."""
        self.allow([b for p in Principal for acl in required_acls(p, cluster) for b in self.bindings(p, acl)])

    @contextmanager
    def without(self, binding: AclBinding) -> Iterator[None]:
        """Take one ACL away for a while."""
        own = AclBindingFilter(
            binding.restype,
            binding.name,
            binding.resource_pattern_type,
            binding.principal,
            binding.host,
            binding.operation,
            binding.permission_type,
        )
        admin = self.admin()
        for future in admin.delete_acls([own]).values():
            assert len(future.result(30)) == 1
        time.sleep(0.1)
        try:
            yield
        finally:
            self.allow([binding])
            time.sleep(0.1)

    def decisions(self) -> list[Decision]:
        """What the cluster's principals asked for since the start."""
        found = (_DECISION.search(line) for line in self._access.read_text(errors="replace").splitlines())
        return [Decision(*match.groups()[:4], *match.groups()[5:]) for match in found if match is not None]


PRINCIPALS = {
    "dictionary": Principal.dictionary,
    "coordinator": Principal.coordinator,
    "store": Principal.store,
    "query_engine": Principal.query_engine,
    "adaptor": Principal.adaptor,
    "adaptor.spark": Principal.spark_adaptor,
    "dispatcher": Principal.dispatcher,
}


def with_principals(monkeypatch: pytest.MonkeyPatch, broker: AuthorizingBroker, folder: Path) -> None:
    """Each service of a LocalCluster connects under its own principal; its password is in a file."""
    add = LocalCluster._add

    def add_with_principal(self: LocalCluster, name: str, module: str, settings: dict[str, str]) -> None:
        properties = broker.properties(PRINCIPALS[module])
        secrets = folder / f"secrets-{name}"
        secrets.mkdir(mode=0o700, parents=True, exist_ok=True)
        (secrets / "sasl.password").touch(0o600)
        (secrets / "sasl.password").write_text(properties.pop("sasl.password"))
        own = {"PENSTOCK_KAFKA_" + key.upper().replace(".", "_"): value for key, value in properties.items()}
        add(self, name, module, settings | own | {"PENSTOCK_SECRET_PROPERTIES_DIR": str(secrets)})

    monkeypatch.setattr(LocalCluster, "_add", add_with_principal)
