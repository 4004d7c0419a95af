"""Prints ACLs: as a table, as commands of Kafka, or as resources of the Strimzi operator."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.acls.required import Acl, Principal

    Acls = Mapping[Principal, Sequence[Acl]]


_STRIMZI_KINDS = {"topic": "topic", "group": "group", "transactional id": "transactionalId"}
_HEAD = ("principal", "resource", "name", "operations")


def table(acls: Acls, users: Mapping[Principal, str]) -> list[str]:
    """Return the lines of a table. A name that ends with `*` stands for all names with this beginning."""
    rows = [_HEAD]
    for principal, own in acls.items():
        rows += [(users[principal], a.kind, a.name + "*" * a.prefixed, ", ".join(a.operations)) for a in own]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def commands(acls: Acls, users: Mapping[Principal, str], bootstrap_servers: str) -> list[str]:
    """Return calls of the command `kafka-acls`, one per resource. In each call, the shell variable `$ADMIN` stands for
    the connection options of an administrator.
    """
    found = []
    for principal, own in acls.items():
        for acl in own:
            parts = ["kafka-acls", "--bootstrap-server", bootstrap_servers, "--add", "--allow-principal"]
            parts += [users[principal], *(part for word in acl.operations for part in ("--operation", word))]
            parts += ["--" + acl.kind.replace(" ", "-"), acl.name]
            parts += ["--resource-pattern-type", "prefixed"] if acl.prefixed else []
            found.append(shlex.join(parts).replace("--add", "$ADMIN --add", 1))
    return found


def strimzi(acls: Acls, users: Mapping[Principal, str], cluster: str, authentication: str) -> list[str]:
    """Return the lines of KafkaUser resources. `cluster`: name of the Kafka resource."""
    lines = []
    for principal, own in acls.items():
        lines += [
            "---",
            "apiVersion: kafka.strimzi.io/v1",
            "kind: KafkaUser",
            "metadata:",
            f"  name: {users[principal].removeprefix('User:')}",
            f"  labels: {{strimzi.io/cluster: {cluster}}}",
            "spec:",
            f"  authentication: {{type: {authentication}}}",
            "  authorization:",
            "    type: simple",
            "    acls:",
            *(f"      - {strimzi_rule(acl)}" for acl in own),
        ]
    return lines


def strimzi_rule(acl: Acl) -> str:
    """Return an ACL as an entry of a KafkaUser, in one line of YAML."""
    kind, pattern = _STRIMZI_KINDS[acl.kind], "prefix" if acl.prefixed else "literal"
    resource = f'{{type: {kind}, name: "{acl.name}", patternType: {pattern}}}'
    return f"{{resource: {resource}, operations: [{', '.join(acl.operations)}]}}"
