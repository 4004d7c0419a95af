"""`penstock doctor` finds planted faults, each with its remedy, on a real broker."""

from __future__ import annotations

import datetime
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing
from types import SimpleNamespace

import pytest
import trustme

pytest.importorskip("confluent_kafka")

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from penstock.acls import Cluster, Principal
from penstock.cli.cluster import doctor as command
from penstock.doctor import Level, brokers, files, issuer_keys, machine, rdma_devices, running_cluster
from penstock.http.security import Role, new_token
from penstock.http.security.certificates import Certificates
from penstock.http.security.issuer import IssuerSettings
from penstock.log import Record, Topic
from penstock.log.clock import SystemClock
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.wire import Heartbeat, encode
from support.oidc import AUDIENCE, LocalIssuer, SigningKey

pytestmark = pytest.mark.xdist_group("broker")


def faults(found):
    """Warnings and failures as text with remedy; each must have one."""
    wrong = [each for each in found if each.level in (Level.warning, Level.failure)]
    assert all(each.remedy for each in wrong)
    return [f"{each.level} {each.check}: {each.text} -> {each.remedy}" for each in wrong]


def one_fault(found):
    [fault] = faults(found)
    return fault


@pytest.fixture
def topics(topic_prefix):
    return ClusterTopics(TopicNames(topic_prefix), 4, 8)


@pytest.fixture
def log(broker):
    with closing(KafkaLog(broker.bootstrap_servers)) as opened:
        yield opened


def check_topics(log, topics):
    return list(brokers.topics(topics, brokers.describe(log, [topic.name for topic in topics.all()])))


def configure(log, topic, **config):
    """Set a topic's settings, and wait until the broker describes them: the controller answers before it does."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
    ]
    admin = AdminClient(log.client())
    for future in admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)]
    ).values():
        future.result(10)
    deadline = time.monotonic() + 60
    while not settings.items() <= brokers.describe(log, [topic])[topic].config.items():
        assert time.monotonic() < deadline, f"{topic} does not have {settings}"
        time.sleep(0.1)


# ---- brokers
def test_a_broker_that_is_down_is_found():
    with closing(KafkaLog("127.0.0.1:1")) as log:
        fault = one_fault(brokers.connection(log, "127.0.0.1:1"))
    assert fault.startswith("failure brokers: 127.0.0.1:1")
    assert "PENSTOCK_BOOTSTRAP_SERVERS" in fault


def test_topics_of_a_new_and_of_a_sound_cluster_are_no_fault(log, topics):
    [new] = check_topics(log, topics)
    assert new.level is Level.skipped
    log.create(topics.all())
    assert faults(check_topics(log, topics)) == []
    for principal in Principal:
        assert faults(brokers.permissions(log, principal, Cluster(topics.names.prefix))) == []


def test_wrong_partitions_cleanup_and_size_of_topics_are_found(log, topics):
    log.create([Topic(topics.names.shards, 3), *topics.all()[1:]])
    configure(log, topics.names.control, cleanup_policy="delete")
    configure(log, topics.names.dictionary, cleanup_policy="compact", max_message_bytes="1000000")
    text = "\n".join(faults(check_topics(log, topics)))
    assert f"{topics.names.shards} has 3 partitions, expected 4 -> set PENSTOCK_SHARDS=3" in text
    assert f"{topics.names.control} has cleanup.policy=delete" in text
    assert f"{topics.names.dictionary} accepts records of 1000000 bytes" in text


def test_a_missing_topic_is_found(log, topics):
    log.create(topics.all()[1:])
    assert f"missing: {topics.names.shards}" in one_fault(check_topics(log, topics))


def test_retention_below_the_age_of_a_checkpoint_is_found(log, topics):
    log.create(topics.all())
    configure(log, topics.names.shards, retention_ms="60000")
    states = brokers.describe(log, [topics.names.shards])
    assert faults(brokers.retention(topics.names.shards, states, 30.0)) == []
    fault = one_fault(brokers.retention(topics.names.shards, states, 3_600.0))
    assert "kept for 60 s, the oldest checkpoint is 3,600 s old -> raise retention.ms" in fault
    assert "no checkpoint" in one_fault(brokers.retention(topics.names.shards, states, None))


# ---- the running cluster
def test_a_clock_that_differs_is_found(log, topics):
    log.create(topics.all())
    now_ms = SystemClock().now_ms

    writer = log.writer()
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(0.2):
            for name, skew in (("store", 0), ("query-engine", 90_000)):
                record = Heartbeat(name, f"{name}-0", "i", now_ms() + skew)
                writer.append([Record(topics.heartbeats, encode(record))])

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        fault = one_fault(running_cluster.clocks(log, topics.heartbeats, SystemClock()))
    finally:
        ended.set()
        thread.join()
    found = re.search(r"clock of query-engine query-engine-0 differs by \+([0-9,]+) ms", fault)
    assert found is not None, fault
    assert 80_000 < int(found[1].replace(",", "")) <= 90_100  # less the age of the heartbeat
    assert "NTP" in fault


def test_services_that_do_not_run_are_found(log, topics):
    log.create(topics.all())
    assert "no heartbeat" in one_fault(running_cluster.clocks(log, topics.heartbeats, SystemClock()))


def test_a_dictionary_that_is_down_is_found():
    fault = one_fault(running_cluster.dictionaries(["grpc://127.0.0.1:1"]))
    assert "grpc://127.0.0.1:1" in fault
    assert "PENSTOCK_DICTIONARIES" in fault


# ---- the machine
def test_a_full_memory_file_system_is_found(tmp_path, monkeypatch):
    full = os.statvfs("/")
    fields = list(full)
    fields[4] = 0  # f_bavail
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result(fields))
    assert "remount,size" in one_fault(machine.shared_memory(tmp_path))
    assert "free space" in one_fault(f for f in machine.disk(tmp_path) if "mode" not in f.text)


def test_a_missing_memory_file_system_is_found(tmp_path):
    assert "PENSTOCK_REGIONS_DIR" in one_fault(machine.shared_memory(tmp_path / "none"))


def test_a_data_directory_that_others_can_read_is_found(tmp_path):
    tmp_path.chmod(0o755)
    assert f"chmod 700 {tmp_path}" in one_fault(machine.disk(tmp_path))
    tmp_path.chmod(0o700)
    assert faults(machine.disk(tmp_path)) == []


def test_few_open_files_and_little_locked_memory_are_found():
    script = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
from penstock.core import _native as native
from penstock.doctor import machine
from penstock.remote import rdma_requirements
native.built_with_rdma = lambda: True
native.rdma_devices = lambda: ["mlx5_0"]
rdma_requirements._may_lock = lambda: False
for finding in [*machine.open_files(), *machine.rdma("", required=True)]:
    print(finding.level, finding.text, finding.remedy)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "at most 256 open files ulimit -n 4096" in done.stdout
    assert "failure at most 64 KiB of memory can be locked set `ulimit -l unlimited`" in done.stdout
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256


def test_without_pyverbs_or_a_device_the_check_of_devices_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyverbs", None)
    [finding] = rdma_devices.devices("")
    assert (finding.level, finding.text) == (
        Level.skipped,
        "pyverbs is not installed (Debian: python3-pyverbs)",
    )


class FakeError(Exception):
    """As pyverbs' own."""


class FakeContext:
    """A device whose port is down, or has no address, or that cannot be opened."""

    def __init__(self, name: str) -> None:
        if name == "closed":
            raise FakeError("Failed to open device")
        self.name = name

    def query_port(self, _: int) -> SimpleNamespace:
        return SimpleNamespace(gid_tbl_len=2, link_layer=2, state=1 if self.name == "down" else 4)

    def query_gid(self, _: int, index: int) -> str:
        if index:
            raise FakeError("empty entry")
        return "fe80:0000:0000:0000:0000:0000:0000:0001"


def test_a_device_that_cannot_be_used_is_found(monkeypatch):
    names = [SimpleNamespace(name=name.encode()) for name in ("closed", "down", "bare")]
    device = SimpleNamespace(get_device_list=lambda: names, Context=FakeContext)
    constants = SimpleNamespace(IBV_LINK_LAYER_ETHERNET=2, IBV_LINK_LAYER_INFINIBAND=1, IBV_PORT_ACTIVE=4)
    modules = {"": SimpleNamespace(device=device, enums=constants), ".device": device, ".enums": constants}
    modules[".pyverbs_error"] = SimpleNamespace(PyverbsRDMAError=FakeError)
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"pyverbs{name}", module)
    closed, down, bare = faults(rdma_devices.devices(""))
    assert "closed cannot be opened" in closed
    assert "/dev/infiniband" in closed
    assert "down, Ethernet: its port is not active -> connect the cable" in down
    assert "bare, Ethernet: no IPv4 address -> give its network interface" in bare
    [one] = faults(rdma_devices.devices("down"))
    assert one == down


def test_a_port_that_is_in_use_is_found():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert f"port {port} is in use (PENSTOCK_LISTEN)" in one_fault(
            machine.ports({"PENSTOCK_LISTEN": ("127.0.0.1", port), "PENSTOCK_DATA_PORT": ("127.0.0.1", 0)})
        )


# ---- files
def test_a_secret_that_is_missing_short_or_public_is_found(tmp_path):
    path = tmp_path / "secret"
    assert "PENSTOCK_SECRET_FILE" in one_fault(files.secret(path))
    path.write_text("short")
    assert "has 5 bytes" in one_fault(files.secret(path))
    path.write_text("s" * 32)
    path.chmod(0o644)
    assert "chmod 600" in one_fault(files.secret(path))
    path.chmod(0o600)
    assert faults(files.secret(path)) == []


def test_malformed_tokens_are_found(tmp_path):
    path = tmp_path / "tokens"
    path.write_text("ann")
    assert "line 1" in one_fault(files.tokens(path))
    path.write_text(new_token("ann", Role.READ)[1])
    path.chmod(0o600)
    assert faults(files.tokens(path)) == []


def test_an_issuer_that_cannot_be_reached_is_found():
    with LocalIssuer(SigningKey("k")) as local:
        settings = IssuerSettings(local.url, AUDIENCE, {"ops": Role.ADMIN})
        assert faults(issuer_keys.keys(settings)) == []
    assert local.url in one_fault(issuer_keys.keys(settings))


def test_a_certificate_that_expires_or_does_not_fit_is_found(tmp_path):
    authority = trustme.CA()

    def issue(name: str, **arguments) -> Certificates:
        made = authority.issue_cert("localhost", **arguments)
        (tmp_path / f"{name}.crt").write_bytes(made.cert_chain_pems[0].bytes())
        (tmp_path / f"{name}.key").write_bytes(made.private_key_pem.bytes())
        return Certificates(tmp_path / f"{name}.crt", tmp_path / f"{name}.key")

    now = datetime.datetime.now(datetime.UTC)
    assert faults(files.certificate(issue("good"))) == []
    assert "expires" in one_fault(files.certificate(issue("soon", not_after=now + datetime.timedelta(days=3))))
    expired = issue("old", not_before=now - datetime.timedelta(days=9), not_after=now - datetime.timedelta(days=1))
    assert one_fault(files.certificate(expired)).startswith("failure")
    assert "belong together" in one_fault(files.certificate(Certificates(tmp_path / "good.crt", tmp_path / "old.key")))


# ---- the command
def test_the_command_names_wrong_settings_and_ends_with_1(monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_SHARDS", "0")
    assert command.doctor("dispatcher") == 1
    text = capsys.readouterr().out
    assert "FAILURE settings: PENSTOCK_BOOTSTRAP_SERVERS" in text
    assert "PENSTOCK_SHARDS" in text


def test_the_command_checks_a_cluster_without_services(broker, topic_prefix, monkeypatch, capsys):
    monkeypatch.setenv("PENSTOCK_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    monkeypatch.setenv("PENSTOCK_PREFIX", topic_prefix)
    assert command.doctor("dispatcher") == 0
    text = capsys.readouterr().out
    assert "ok      brokers" in text
    assert "skipped topics" in text
