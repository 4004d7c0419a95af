"""`penstock acls` prints every ACL of the definition in each form."""

from __future__ import annotations

import shlex

import pytest
import yaml

pytest.importorskip("confluent_kafka")

from penstock.acls import Cluster, Principal, required_acls, used_topics
from penstock.cli.app import main


def printed(capsys, *arguments):
    assert main(["acls", *arguments]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_table_has_a_line_for_each_acl(capsys):
    head, *lines = printed(capsys, "store", "--prefix", "p")
    assert head.split() == ["principal", "resource", "name", "operations"]
    assert [line.split(maxsplit=2)[2].split() for line in lines] == [
        ["p.shards", "Read"],
        ["p.progress", "Read"],
        ["p.control", "Read"],
        ["p.quarantine", "Read"],
        ["p.heartbeats", "Write"],
    ]


def test_services_are_the_default_and_all_adds_users(capsys):
    services = {line.split()[0] for line in printed(capsys)[1:]}
    assert "User:penstock-query-engine" in services
    assert "User:penstock-consumer" not in services
    assert len({line.split()[0] for line in printed(capsys, "all")[1:]}) == len(Principal)


def test_commands_name_principal_resource_and_pattern(capsys):
    lines = printed(capsys, "producer", "--format", "commands", "--stream", "s", "--user", "producer=CN=app")
    assert [shlex.split(line) for line in lines] == [
        [
            "kafka-acls",
            "--bootstrap-server",
            "localhost:9092",
            "$ADMIN",
            "--add",
            "--allow-principal",
            "User:CN=app",
            "--operation",
            "Write",
            "--topic",
            "penstock.events.s",
        ]
    ]
    [_, _, _, _, _, transactions] = printed(capsys, "dictionary", "--format", "commands")
    assert transactions.endswith("--transactional-id penstock.dictionary --resource-pattern-type prefixed")


def test_strimzi_gets_a_user_for_each_principal(capsys):
    users = list(yaml.safe_load_all("\n".join(printed(capsys, "all", "--format", "strimzi"))))
    assert [user["metadata"]["name"] for user in users] == [f"penstock-{principal}" for principal in Principal]
    for user, principal in zip(users, Principal, strict=True):
        assert len(user["spec"]["authorization"]["acls"]) == len(required_acls(principal, Cluster()))
    [group] = [a for a in users[0]["spec"]["authorization"]["acls"] if a["resource"]["type"] == "group"]
    assert group == {
        "resource": {"type": "group", "name": "penstock.coordinator", "patternType": "literal"},
        "operations": ["Read"],
    }


def test_a_results_topic_and_a_group_are_added(capsys):
    lines = printed(capsys, "query-engine", "consumer", "--results", "reports", "--group", "dashboard")
    assert [line.split()[1:] for line in lines if " reports " in line or " dashboard " in line] == [
        ["topic", "reports", "Write,", "DescribeConfigs"],
        ["topic", "reports", "Read"],
        ["group", "dashboard", "Read"],
    ]


def test_an_unknown_service_is_an_error(capsys):
    assert main(["acls", "brokers"]) == 1
    assert "brokers is no service or user: coordinator, adaptor" in capsys.readouterr().err


def test_every_topic_of_a_cluster_is_used_by_the_service_that_creates_it():
    topics = Cluster("p").topics
    assert used_topics(Principal.coordinator, topics) == topics.all()
    assert topics.names.dictionary not in {topic.name for topic in used_topics(Principal.store, topics)}
