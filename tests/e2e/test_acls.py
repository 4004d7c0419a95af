"""A cluster works on a broker that enforces ACLs, with exactly the ACLs that `penstock acls` prints.

Each service has its own principal.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing

import pytest

pytest.importorskip("confluent_kafka")

from penstock import Client
from penstock.acls import Acl, Cluster, Principal, required_acls
from penstock.acls.checking import lacking_operations
from penstock.acls.required import SERVICES
from penstock.doctor import Level
from penstock.doctor.brokers import permissions
from penstock.errors import AccessError
from penstock.log import DeniedError, Partition, Topic
from support.authorizing import PASSWORD, AuthorizingBroker, with_principals
from support.cluster_load import BOUND_S, small

pytestmark = pytest.mark.xdist_group("broker")
PREFIX = "guarded"
S, EX = "http://x/s", "http://x/"
ROWS = f"""SELECT ?label FROM STREAM <{S}> [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored>
WHERE {{ ?road <{EX}speed> ?speed ; <{EX}label> ?label }}"""
CLUSTER = Cluster(PREFIX, groups=("dashboard",))


# ACLs that no step of the test uses: the broker does not log a decision for them
RARE = {
    ("coordinator", "Read", f"{PREFIX}.quarantine"): "an unreadable record",
    ("coordinator", "Read", f"{PREFIX}.dispatcher"): "predicates that no query reads",
    ("coordinator", "Write", f"{PREFIX}.parameters."): "members of a query set over HTTP",
    ("coordinator", "Write", f"{PREFIX}.status"): "a refused request by topic",
    ("adaptor", "Alter", f"{PREFIX}.tuples."): "an events topic that got more partitions",
    ("adaptor", "Read", f"{PREFIX}.quarantine"): "an unreadable record",
    ("dispatcher", "Describe", f"{PREFIX}.adaptor"): "a partition that is idle",
    ("dispatcher", "Read", f"{PREFIX}.quarantine"): "an unreadable record",
    ("dispatcher", "Write", f"{PREFIX}.dead-letter"): "an event that is too far ahead",
    ("dictionary", "Read", f"{PREFIX}.quarantine"): "an unreadable record",
    ("store", "Read", f"{PREFIX}.quarantine"): "an unreadable record",
    ("query-engine", "Read", f"{PREFIX}.quarantine"): "an unreadable record",
    ("query-engine", "Read", f"{PREFIX}.parameters."): "a query set",
    ("query-engine", "Write", f"{PREFIX}.dead-letter"): "a record that cannot be a member of a query set",
    ("query-engine", "Write", f"{PREFIX}.shards"): "a derived stream",
    ("query-engine", "Create", f"{PREFIX}.results"): "a deleted results topic",
    ("query-engine", "DescribeConfigs", f"{PREFIX}.results"): "an answer that is too large",
    ("query-engine", "DescribeConfigs", f"{PREFIX}.results."): "an answer that is too large",
    ("query-engine", "Write", f"{PREFIX}.results"): "a query without a results topic of its own",
}
# Requests that list what a client may do, and those for which Kafka has another way: never an error of a service
PROBES = {"Metadata", "DescribeTopicPartitions", "InitProducerId", "CreateTopics"}


@pytest.fixture(scope="module")
def guarded(broker_jars, tmp_path_factory):
    del broker_jars  # only for its means
    made = AuthorizingBroker(tmp_path_factory.mktemp("guarded"), PREFIX)
    with made.broker:
        made.allow_all(CLUSTER)
        yield made


def test_a_cluster_works_with_exactly_these_acls(guarded, tmp_path, monkeypatch):
    with_principals(monkeypatch, guarded, tmp_path)
    reads, writes = (guarded.properties(Principal[name]) for name in ("consumer", "producer"))
    servers = guarded.bootstrap_servers
    with (
        small(servers, PREFIX, tmp_path / "c", stores=1) as cluster,
        Client(servers, cluster.url, prefix=PREFIX, kafka=reads) as client,
        Client(servers, cluster.url, prefix=PREFIX, kafka=writes) as producer,
    ):
        client.load(f'<{EX}a> <{EX}label> "A" .'.encode(), format="turtle")
        client.declare_stream(S, name="s", timing=[EX + "speed"], batch_ms=100)
        query = client.register(ROWS, name="rows", topic=f"{PREFIX}.results.rows")
        producer.push("s", f"<{EX}a> <{EX}speed> 5 .", 1_500, format="turtle")
        producer.push("s", b"not RDF", 1_600)
        producer.advance("s", 4_000)
        producer.push("s", f"<{EX}a> <{EX}speed> 6 .", 1_700, format="turtle")
        until(lambda: labels(query) == ["A"])
        until(lambda: client.late(S))
        until(client.dead_letters)
        used = guarded.decisions()
        adaptor = cluster.services["adaptor-0"]
        [reading] = guarded.bindings(Principal.adaptor, Acl("topic", f"{PREFIX}.events.", ("Read",), prefixed=True))
        with guarded.without(reading):
            producer.push("s", f"<{EX}a> <{EX}speed> 7 .", 4_500, format="turtle")
            until(lambda: "may not Read" in cluster.supervisor.last_line(adaptor))
            check_message(cluster.supervisor.last_line(adaptor), Principal.adaptor, "Read", f"{PREFIX}.events.s")
        producer.advance("s", 8_000)
        until(lambda: labels(query) == ["A"], cluster.watch)
        with pytest.raises(AccessError, match=f"User:{PREFIX}-consumer may not Describe topic {PREFIX}.events.s"):
            client.push("s", b"", 1_800)
    services = {guarded.user(principal): principal for principal in SERVICES}
    denied = {d for d in used if d.outcome == "Denied" and d.user.removeprefix("User:") in services}
    assert {d for d in denied if d.request not in PROBES and (d.kind, d.name) != ("Group", "-")} == set()
    assert unused(guarded, used) - RARE.keys() == set()


def unused(guarded, decisions):
    """The ACLs that no request but those of `PROBES` used."""
    allowed = {d for d in decisions if d.outcome == "Allowed" and d.request != "Metadata"}
    found = set()
    for principal in SERVICES:
        if principal is Principal.spark_adaptor:
            continue
        own = [d for d in allowed if d.user == f"User:{guarded.user(principal)}"]
        for acl in required_acls(principal, CLUSTER):
            for word in acl.operations:
                if not any(d.operation.replace("_", "") == word.upper() and acl.covers(d.name) for d in own):
                    found.add((str(principal), word, acl.name))
    return found


def labels(query):
    return [str(row["label"]) for evaluation in query.poll() for row in evaluation.answer]


def until(condition, meanwhile=lambda: None):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        meanwhile()
        time.sleep(0.1)


def check_message(text, principal, operation, resource):
    assert f"User:{PREFIX}-{principal} may not {operation}" in text
    assert resource in text
    assert "`penstock acls`" in text


@pytest.fixture(scope="module")
def with_topics(guarded):
    """All topics of a cluster with one stream."""
    with closing(guarded.log(Principal.coordinator)) as log:
        names = CLUSTER.names
        log.create(
            [*CLUSTER.topics.all(), *(Topic(name("s")) for name in (names.events, names.tuples, names.parameters))]
        )
        log.create([Topic(names.dispatcher, 1, "compact")])
        log.create([Topic(f"{names.results}.rows")])
    return guarded


@pytest.mark.parametrize("principal", list(Principal))
def test_a_missing_acl_is_an_error_that_names_it(with_topics, principal):
    for acl in required_acls(principal, CLUSTER):
        for binding, operation in zip(with_topics.bindings(principal, acl), acl.operations, strict=True):
            with with_topics.without(binding), closing(with_topics.log(principal)) as log:
                message = refusal(log, principal, acl, operation)
                # Kafka tells nothing of a topic that a principal may not describe; Read and Write include Describe
                check_message(message, principal, "" if acl.prefixed else operation, acl.name)
                if acl.prefixed and acl.kind == "topic":
                    continue  # the doctor looks at topics that it sees
                faults = [each for each in permissions(log, principal, CLUSTER) if each.level is Level.failure]
                assert any(f"may not {operation} {acl.kind} {acl.name}" in each.text for each in faults), acl
                assert all(f"penstock acls {principal}" in each.remedy for each in faults)
    with closing(with_topics.log(principal)) as log:
        assert [each.level for each in permissions(log, principal, CLUSTER)] == [Level.ok]


def refusal(log, principal, acl, operation):
    """The message of the service's own way to find that it lacks an ACL."""
    if acl.kind == "topic":
        lacking = lacking_operations(log, principal, CLUSTER)
        if lacking:
            assert {operation} >= {word for word, _ in lacking} or not acl.prefixed
            return str(log.denied(operation, f"topic {lacking[0][1]}"))
    with pytest.raises(DeniedError) as caught:
        attempt(log, principal, acl, operation)
    return str(caught.value)


def attempt(log, principal, acl, operation):
    if acl.kind == "transactional id":
        log.transactional(f"{acl.name}.x")
    elif acl.kind == "group" and operation == "Read":
        reader = log.join(acl.name, [next(a.name for a in required_acls(principal, CLUSTER) if a.kind == "topic")])
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            reader.poll(1, 0.2)
    elif acl.kind == "group":
        log.committed(f"{PREFIX}.adaptor", [Partition(f"{PREFIX}.events.s")])
    else:
        log.spans([Partition(f"{acl.name}{'rows' if 'results' in acl.name else 's'}")])


def test_a_service_that_lacks_an_acl_ends_with_the_reason(with_topics, tmp_path):
    [binding] = with_topics.bindings(Principal.dispatcher, Acl("topic", f"{PREFIX}.late", ("Write",)))
    with closing(with_topics.log(Principal.store)) as log:
        shards = log.topics()[CLUSTER.names.shards]
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "sasl.password").write_text(PASSWORD)
    settings = {
        "PENSTOCK_BOOTSTRAP_SERVERS": with_topics.bootstrap_servers,
        "PENSTOCK_PREFIX": PREFIX,
        "PENSTOCK_SHARDS": str(shards),
        "PENSTOCK_SECRET_PROPERTIES_DIR": str(secrets),
        "PENSTOCK_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "PENSTOCK_KAFKA_SASL_MECHANISM": "PLAIN",
        "PENSTOCK_KAFKA_SASL_USERNAME": with_topics.user(Principal.dispatcher),
    }
    command = [sys.executable, "-m", "penstock.services.dispatcher.service"]
    with with_topics.without(binding):
        done = subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, timeout=BOUND_S, check=False
        )
    assert done.returncode == 1
    failed = json.loads((done.stdout + done.stderr).strip().splitlines()[-1])
    check_message(failed["reason"], Principal.dispatcher, "Write", f"topic {PREFIX}.late")
    assert PASSWORD not in done.stdout + done.stderr
