"""Finds out which operations the brokers deny to a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.acls.required import required_acls
from penstock.log import DeniedError, Partition, UnknownTopicError

if TYPE_CHECKING:
    from penstock.acls.required import Cluster, Principal
    from penstock.log.kafka import KafkaLog


def lacking_operations(log: KafkaLog, principal: Principal, cluster: Cluster) -> list[tuple[str, str]]:
    """Return the operations on topics that a principal needs, but that the brokers deny. Each element of the result is
    a pair (operation, topic).

    The brokers decide for the user of the connection `log`. To check a principal, connect as this principal. Topics of
    streams and queries are checked only if this user can see these topics.
    """
    needed = [acl for acl in required_acls(principal, cluster) if acl.kind == "topic"]
    seen = log.topics()
    visible = [name for name in seen if any(acl.covers(name) for acl in needed)]
    found = []
    for name, allowed in sorted(log.operations(visible).items()):
        if allowed is not None:  # None: the brokers enforce no ACLs
            required = sorted({operation for acl in needed if acl.covers(name) for operation in acl.operations})
            found += [(operation, name) for operation in required if operation not in allowed]
    for acl in needed:
        if not acl.prefixed and acl.name not in seen and _hidden(log, acl.name):
            found += [(operation, acl.name) for operation in acl.operations]
    return found


def _hidden(log: KafkaLog, topic: str) -> bool:
    """Return whether the ACLs hide the existence of a topic from this client."""
    try:
        log.check(Partition(topic))
    except DeniedError:
        return True
    except UnknownTopicError:
        pass
    return False
