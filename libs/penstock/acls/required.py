"""Defines the least permissions of each service and kind of user, as operations on Kafka resources.

With each of Read, Write, Alter and Delete, Kafka also grants Describe. An ACL therefore contains Describe only if it
contains none of these four operations. If the brokers deny an operation that a service needs, the service reports the
denial at its start (`penstock.runtime.permissions`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.log import Topic

ResourceKind = Literal["topic", "group", "transactional id"]


class Principal(StrEnum):
    """A service, or a kind of user, that connects to the brokers under its own name."""

    coordinator = "coordinator"
    adaptor = "adaptor"
    spark_adaptor = "spark-adaptor"
    dispatcher = "dispatcher"
    dictionary = "dictionary"
    store = "store"
    query_engine = "query-engine"
    producer = "producer"
    """Pushes events to streams."""
    registrar = "registrar"
    """Declares streams, registers queries and changes members of query sets by records in topics."""
    consumer = "consumer"
    """Reads results, states of registrations, late events and dead letters."""
    operator = "operator"
    """Runs `penstock quarantine` and `penstock doctor`."""


SERVICES: Final = (
    Principal.coordinator,
    Principal.adaptor,
    Principal.spark_adaptor,
    Principal.dispatcher,
    Principal.dictionary,
    Principal.store,
    Principal.query_engine,
)


@dataclass(frozen=True, slots=True)
class Acl:
    """Operations that a principal is allowed to perform on the resource `name`. If `prefixed` is set, the ACL applies
    to all resources whose names begin with `name`.
    """

    kind: ResourceKind
    name: str
    operations: tuple[str, ...]
    prefixed: bool = False

    def covers(self, name: str) -> bool:
        """Return whether the ACL applies to the resource with this name."""
        return name.startswith(self.name) if self.prefixed else name == self.name


@dataclass(frozen=True, slots=True)
class Cluster:
    """The names on which the ACLs of a cluster depend. `streams`: names of the streams to which producers push. An
    empty value means all streams. `results`: the results topics whose names do not begin with the cluster's prefix.
    `groups`: the consumer groups of the principal `consumer`.
    """

    prefix: str = "penstock"
    adaptor_group: str = ""
    streams: Sequence[str] = ()
    results: Sequence[str] = ()
    groups: Sequence[str] = ()
    names: TopicNames = field(init=False)
    topics: ClusterTopics = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", TopicNames(self.prefix))
        object.__setattr__(self, "topics", ClusterTopics(self.names))

    @property
    def group(self) -> str:
        """The consumer group of the adaptors."""
        return self.adaptor_group or self.names.adaptor_group

    @property
    def events(self) -> str:
        """The beginning of the names of all events topics."""
        return f"{self.prefix}.events."

    @property
    def parameters(self) -> str:
        """The beginning of the names of all parameters topics."""
        return f"{self.prefix}.parameters."

    @property
    def tuples(self) -> str:
        """The beginning of the names of all tuples topics."""
        return f"{self.prefix}.tuples."


def required_acls(principal: Principal, cluster: Cluster) -> list[Acl]:
    """Return the least ACLs with which a principal can do its work."""
    return _REQUIRED[principal](cluster)


def used_topics(principal: Principal, topics: ClusterTopics) -> list[Topic]:
    """Return the topics that exist in every cluster and that a principal uses."""
    own = [acl for acl in required_acls(principal, Cluster(topics.names.prefix)) if acl.kind == "topic"]
    return [topic for topic in topics.all() if any(acl.covers(topic.name) for acl in own)]


def _topic(name: str, *operations: str) -> Acl:
    return Acl("topic", name, operations)


def _topics(prefix: str, *operations: str) -> Acl:
    return Acl("topic", prefix, operations, prefixed=True)


def _transactions(cluster: Cluster, name: str) -> Acl:
    """Return the ACL of a transactional id, and of all longer ids that begin with this id. If the brokers refuse a
    transaction, the writer of the transaction uses longer ids to find the topic that the brokers deny.
    """
    return Acl("transactional id", f"{cluster.prefix}.{name}", ("Write",), prefixed=True)


def _coordinator(cluster: Cluster) -> list[Acl]:
    names, topics = cluster.names, cluster.topics
    return [
        _topics(f"{cluster.prefix}.", "Create", "Describe"),
        *(_topic(name, "Create", "Describe") for name in cluster.results),
        _topic(names.control, "Read", "Write"),
        _topic(names.shards, "Write"),
        _topic(names.status, "Read", "Write"),
        _topic(names.streams, "Read"),
        _topic(names.queries, "Read"),
        _topic(names.dispatcher, "Read"),
        _topic(names.quarantine, "Read"),
        _topic(topics.heartbeats, "Read", "Write"),
        _topics(cluster.parameters, "Write"),
        *_elected(cluster, "coordinator"),
    ]


def _elected(cluster: Cluster, service: str) -> list[Acl]:
    return [
        _topic(cluster.topics.election(service), "Read"),
        Acl("group", f"{cluster.prefix}.{service}", ("Read",)),
        _transactions(cluster, service),
    ]


def _any_adaptor(cluster: Cluster) -> list[Acl]:
    names = cluster.names
    return [
        _topic(names.control, "Read"),
        _topics(cluster.events, "Read"),
        _topics(cluster.tuples, "Write", "Alter"),
        _topic(names.dead_letter, "Write"),
        _topic(names.quarantine, "Read"),
        Acl("group", cluster.group, ("Read",)),
    ]


def _spark_adaptor(cluster: Cluster) -> list[Acl]:
    return [*_any_adaptor(cluster), _transactions(cluster, "spark-adaptor")]


def _dispatcher(cluster: Cluster) -> list[Acl]:
    names = cluster.names
    return [
        _topic(names.control, "Read"),
        _topics(cluster.tuples, "Read"),
        _topics(cluster.events, "Read"),
        _topic(names.dispatcher, "Read", "Write", "Create"),
        _topic(names.shards, "Write"),
        _topic(names.late, "Write"),
        _topic(names.dead_letter, "Write"),
        _topic(names.quarantine, "Read"),
        Acl("group", cluster.group, ("Describe",)),
        _transactions(cluster, "dispatcher"),
    ]


def _dictionary(cluster: Cluster) -> list[Acl]:
    return [
        _topic(cluster.names.dictionary, "Read", "Write"),
        _topic(cluster.names.quarantine, "Read"),
        _topic(cluster.topics.heartbeats, "Write"),
        *_elected(cluster, "dictionary"),
    ]


def _store(cluster: Cluster) -> list[Acl]:
    return [
        _topic(cluster.names.shards, "Read"),
        _topic(cluster.topics.progress, "Read"),
        _topic(cluster.names.control, "Read"),
        _topic(cluster.names.quarantine, "Read"),
        _topic(cluster.topics.heartbeats, "Write"),
    ]


def _query_engine(cluster: Cluster) -> list[Acl]:
    names, topics = cluster.names, cluster.topics
    return [
        _topic(names.shards, "Read", "Write"),
        _topic(topics.progress, "Read", "Write"),
        _topic(names.control, "Read"),
        _topic(names.quarantine, "Read"),
        _topics(cluster.parameters, "Read"),
        _topic(names.dead_letter, "Write"),
        _topic(topics.heartbeats, "Write"),
        _topic(names.status, "Write"),
        _topic(names.results, "Write", "Create", "DescribeConfigs"),
        _topics(f"{names.results}.", "Write", "DescribeConfigs"),
        *(_topic(name, "Write", "DescribeConfigs") for name in cluster.results),
        _transactions(cluster, "bucket."),
    ]


def _producer(cluster: Cluster) -> list[Acl]:
    if not cluster.streams:
        return [_topics(cluster.events, "Write")]
    return [_topic(cluster.names.events(name), "Write") for name in cluster.streams]


def _registrar(cluster: Cluster) -> list[Acl]:
    names = cluster.names
    return [
        _topic(names.streams, "Write"),
        _topic(names.queries, "Write"),
        _topics(cluster.parameters, "Write"),
        _topic(names.status, "Read"),
    ]


def _consumer(cluster: Cluster) -> list[Acl]:
    names = cluster.names
    return [
        _topic(names.results, "Read"),
        _topics(f"{names.results}.", "Read"),
        *(_topic(name, "Read") for name in cluster.results),
        *(_topic(name, "Read") for name in (names.status, names.late, names.dead_letter)),
        *(Acl("group", name, ("Read",)) for name in cluster.groups),
    ]


def _operator(cluster: Cluster) -> list[Acl]:
    names = cluster.names
    return [
        _topics(f"{cluster.prefix}.", "Read", "DescribeConfigs"),
        _topic(names.quarantine, "Write", "Create"),
        _topic(names.dead_letter, "Write"),
        Acl("group", f"{cluster.prefix}.", ("Describe",), prefixed=True),
        _transactions(cluster, "quarantine"),
    ]


_REQUIRED: Mapping[Principal, Callable[[Cluster], list[Acl]]] = {
    Principal.coordinator: _coordinator,
    Principal.adaptor: _any_adaptor,
    Principal.spark_adaptor: _spark_adaptor,
    Principal.dispatcher: _dispatcher,
    Principal.dictionary: _dictionary,
    Principal.store: _store,
    Principal.query_engine: _query_engine,
    Principal.producer: _producer,
    Principal.registrar: _registrar,
    Principal.consumer: _consumer,
    Principal.operator: _operator,
}
