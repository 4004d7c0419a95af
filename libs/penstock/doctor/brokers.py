"""Checks of the brokers: connection, topics, permissions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient, ConfigResource, ResourceType

from penstock.doctor.findings import failure, ok, skipped, warning
from penstock.log import TransientError
from penstock.log.port import MAX_RECORD_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.doctor.findings import Finding
    from penstock.log import Topic
    from penstock.log.kafka import KafkaLog
    from penstock.replication.cluster_topics import ClusterTopics

_ANSWER_S: Final = 10.0
_FOREVER: Final = -1
_NEEDED: Final = {AclOperation.READ: "Read", AclOperation.WRITE: "Write", AclOperation.DESCRIBE: "Describe"}


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the brokers describe it. `operations`: what this client may do; None if the brokers do not
    report it.
    """

    partitions: int
    config: Mapping[str, str]
    operations: frozenset[AclOperation] | None


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
    known = [name for name in names if name in log.topics()]
    if not known:
        return {}
    try:
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in known]
        configs = {
            resource.name: {entry.name: str(entry.value) for entry in future.result(_ANSWER_S).values()}
            for resource, future in admin.describe_configs(resources).items()
        }
        described = admin.describe_topics(TopicCollection(known), include_authorized_operations=True)
        found = {name: future.result(_ANSWER_S) for name, future in described.items()}
    except KafkaException as exception:
        raise TransientError(str(exception.args[0].str())) from exception
    return {
        name: TopicState(
            len(found[name].partitions),
            configs[name],
            None if found[name].authorized_operations is None else frozenset(found[name].authorized_operations),
        )
        for name in known
    }


def topics(topics_: ClusterTopics, states: Mapping[str, TopicState]) -> Iterator[Finding]:
    """Check that the cluster's topics exist, with the partitions and settings that services need."""
    wrong = False
    for topic in topics_.all():
        state = states.get(topic.name)
        if state is not None:
            found = list(_topic(topics_, topic, state))
            wrong = wrong or bool(found)
            yield from found
    absent = [topic.name for topic in topics_.all() if topic.name not in states]
    if absent and states:
        yield warning("topics", f"missing: {', '.join(absent)}", "services create them when they start")
    elif absent:
        yield skipped("topics", "none exists yet: services create them when they start")
    elif not wrong:
        yield ok("topics", f"{len(states)} topics have the expected partitions and settings")


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


def permissions(states: Mapping[str, TopicState]) -> Iterator[Finding]:
    """Check that this client may read, write and describe the cluster's topics."""
    denied = 0
    for name, state in states.items():
        if state.operations is None:
            continue
        lacking = [word for operation, word in _NEEDED.items() if operation not in state.operations]
        if lacking:
            denied += 1
            yield failure(
                "permissions",
                f"{', '.join(lacking)} denied on {name}",
                f"kafka-acls --add --allow-principal USER --operation {lacking[0]} --topic {name}",
            )
    if states and not denied:
        yield ok("permissions", f"read, write and describe allowed on {len(states)} topics")


def retention(shards: str, states: Mapping[str, TopicState], oldest_checkpoint_s: float | None) -> Iterator[Finding]:
    """Check that the log reaches back to the oldest checkpoint (`oldest_checkpoint_s`: its age; None: none exists)."""
    state = states.get(shards)
    if state is None:
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
