"""Checks of the brokers: connection, topics, permissions, retention."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from penstock.acls import required_acls
from penstock.acls.checking import lacking_operations
from penstock.doctor.findings import failure, ok, skipped, warning
from penstock.log import DeniedError, LogError, TransientError
from penstock.log.port import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from penstock.acls import Acl, Cluster, Principal
    from penstock.doctor.findings import Finding
    from penstock.log import Topic
    from penstock.log.kafka import KafkaLog
    from penstock.replication.cluster_topics import ClusterTopics

_ANSWER_S: Final = 10.0
_FOREVER: Final = -1


@dataclass(frozen=True, slots=True)
class TopicState:
    """The state of a topic in the brokers. `config`: the settings of the topic. None if this client is not allowed to
    read these settings.
    """

    partitions: int
    config: Mapping[str, str] | None


def connection(log: KafkaLog, servers: str) -> Iterator[Finding]:
    """Check that the brokers answer and accept this client."""
    try:
        found = log.topics()
    except TransientError as error:
        reason = log.last_error() or str(error)
        yield failure(
            "brokers",
            f"{servers}: {reason}",
            "check PENSTOCK_BOOTSTRAP_SERVERS, the network, and PENSTOCK_KAFKA_SECURITY_PROTOCOL with its credentials",
        )
    else:
        yield ok("brokers", f"{servers} answer, {len(found)} topics")


def describe(log: KafkaLog, names: list[str]) -> dict[str, TopicState]:
    """Return the state of each topic that exists. TransientError if the brokers do not answer."""
    admin = AdminClient(log.client())
    partitions = {name: count for name, count in log.topics().items() if name in names}
    if not partitions:
        return {}
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in partitions]
    configs: dict[str, Mapping[str, str] | None] = {}
    for resource, future in admin.describe_configs(resources).items():
        try:
            configs[resource.name] = {entry.name: str(entry.value) for entry in future.result(_ANSWER_S).values()}
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise TransientError(str(exception.args[0].str())) from exception
            configs[resource.name] = None
    return {name: TopicState(count, configs[name]) for name, count in partitions.items()}


def topics(
    topics_: ClusterTopics, states: Mapping[str, TopicState], used: Sequence[Topic] | None = None
) -> Iterator[Finding]:
    """Check that topics exist, and that their partitions and settings are as services need them. `used`: the topics to
    check. None: all topics.
    """
    wrong, checked = False, topics_.all() if used is None else used
    for topic in checked:
        state = states.get(topic.name)
        if state is not None:
            found = list(_topic(topics_, topic, state))
            wrong = wrong or bool(found)
            yield from found
    absent = [topic.name for topic in checked if topic.name not in states]
    unread = [topic.name for topic in checked if topic.name in states and states[topic.name].config is None]
    if absent and states:
        yield warning("topics", f"missing: {', '.join(absent)}", "services create them when they start")
    elif absent:
        yield skipped("topics", "none exists yet: services create them when they start")
    elif not wrong:
        yield ok("topics", f"{len(states)} topics have the expected partitions and settings")
    if unread:
        yield skipped("topics", f"this client may not read the settings of {', '.join(unread)} (DescribeConfigs)")


def _topic(topics_: ClusterTopics, topic: Topic, state: TopicState) -> Iterator[Finding]:
    names = topics_.names
    if state.partitions != topic.partitions:
        setting = {names.shards: "SHARDS", topics_.progress: "BUCKETS"}.get(topic.name)
        remedy = (
            f"set PENSTOCK_{setting}={state.partitions} on all services; it never changes in the life of a cluster"
            if setting
            else f"create it again with {topic.partitions} partition(s) before the cluster's first start"
        )
        text = f"{topic.name} has {state.partitions} partitions, expected {topic.partitions}"
        if setting or topic.partitions == 1:
            yield failure("topics", text, remedy)
        else:
            yield warning("topics", text, "fine: results use the partitions that there are")
    if state.config is None:
        return
    policy = state.config.get("cleanup.policy", "")
    if policy != topic.cleanup:
        text, change = f"{topic.name} has cleanup.policy={policy}", f"cleanup.policy={topic.cleanup}"
        yield failure("topics", text, f"kafka-configs --topic {topic.name} --alter --add-config {change}")
    limit = int(state.config.get("max.message.bytes", MAX_RECORD_BYTES))
    if limit < MAX_RECORD_BYTES:
        change = f"--alter --add-config max.message.bytes={MAX_RECORD_BYTES}"
        yield warning(
            "topics", f"{topic.name} accepts records of {limit} bytes", f"kafka-configs --topic {topic.name} {change}"
        )


def permissions(log: KafkaLog, principal: Principal, cluster: Cluster) -> Iterator[Finding]:
    """Check that this client has the permissions of a service on topics, consumer groups and transactional ids."""
    acls = required_acls(principal, cluster)
    denied = [(operation, f"topic {topic}") for operation, topic in lacking_operations(log, principal, cluster)]
    for acl in acls:
        denied += _denied(log, acl)
    for operation, resource in denied:
        yield failure(
            "permissions",
            str(log.denied(operation, resource)),
            f"add the ACLs that `penstock acls {principal}` prints for prefix {cluster.prefix}",
        )
    if not denied:
        yield ok("permissions", f"all {len(acls)} ACLs of {principal} are in force")


def _denied(log: KafkaLog, acl: Acl) -> list[tuple[str, str]]:
    """Return the denied operations among the operations of an ACL, as pairs (operation, resource). Checks only ACLs on
    groups and transactional ids. For other resources, the list is empty.
    """
    resource = f"{acl.kind} {acl.name}"
    try:
        if acl.kind == "group":
            allowed = log.group_operations(acl.name)
            return [(word, resource) for word in acl.operations if allowed is not None and word not in allowed]
        if acl.kind == "transactional id":
            log.transactional(f"{acl.name}.doctor-{uuid.uuid4().hex}").close()  # must fence no service
    except DeniedError:
        return [(acl.operations[0], resource)]
    except LogError as error:
        raise TransientError(str(error)) from error
    return []


def retention(shards: str, states: Mapping[str, TopicState], oldest_checkpoint_s: float | None) -> Iterator[Finding]:
    """Check that the retention of the shards topic is longer than the age of the oldest checkpoint.
    `oldest_checkpoint_s`: this age in s. None: no checkpoint exists.
    """
    state = states.get(shards)
    if state is None or state.config is None:
        return
    retention_ms = int(state.config.get("retention.ms", _FOREVER))
    if retention_ms == _FOREVER:
        yield ok("retention", f"{shards} is kept for ever")
        return
    retention_s = retention_ms / 1000
    text = f"{shards} is kept for {retention_s:,.0f} s"
    if oldest_checkpoint_s is None:
        yield warning("retention", f"{text}, and there is no checkpoint", "a service that starts reads the whole log")
    elif retention_s < oldest_checkpoint_s:
        yield failure(
            "retention",
            f"{text}, the oldest checkpoint is {oldest_checkpoint_s:,.0f} s old",
            f"raise retention.ms of {shards}, and find out why checkpoints are not written",
        )
    else:
        yield ok("retention", f"{text}, the oldest checkpoint is {oldest_checkpoint_s:,.0f} s old")
