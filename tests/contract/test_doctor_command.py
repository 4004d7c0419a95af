"""One run of `penstock doctor` finds every fault that is planted in the settings, the machine, the brokers and the
cluster, and prints a remedy for each.
"""

from __future__ import annotations

import datetime
import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest
import trustme

pytest.importorskip("confluent_kafka")

from penstock.log import Record, Topic
from penstock.log.clock import SystemClock
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.wire import Heartbeat, encode

from .test_doctor import configure

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("broker")
LEAST_PLANTED = 12
DAY = datetime.timedelta(days=1)


@contextmanager
def small_memory(folder: Path) -> Iterator[bool]:
    """Mount a memory file system of a megabyte. False without the right to do so."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder]
    mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", folder], check=True)


@contextmanager
def heartbeats(log: KafkaLog, topic: str, skew_ms: int) -> Iterator[None]:
    """Send heartbeats of a service whose clock differs."""
    ended, writer = threading.Event(), log.writer()

    def beat() -> None:
        while not ended.wait(0.2):
            record = Heartbeat("dispatcher", "d-0", "i", SystemClock().now_ms() + skew_ms)
            writer.append([Record(topic, encode(record))])

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(environment: dict[str, str], *, files: int = 1024) -> dict[str, list[dict[str, str]]]:
    """Run the command with `files` open files and no locked memory, and return warnings and failures by check."""
    limits = f'ulimit -l 0; ulimit -n {files}; exec setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "$@"'
    command = ["bash", "-c", limits, "bash", sys.executable, "-m", "penstock", "doctor", "store", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
    assert done.returncode == 1, done.stderr
    found: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(done.stdout):
        if finding["level"] in ("warning", "failure"):
            assert finding["remedy"], finding
            found.setdefault(finding["check"], []).append(finding)
    return found


def plant_topics(log: KafkaLog, topics: ClusterTopics) -> None:
    """Make topics with another number of partitions, clean-up, size and retention, and leave one out."""
    names = topics.names
    made = [topic for topic in topics.all() if topic.name not in (names.shards, names.quarantine)]
    log.create([Topic(names.shards, 3), *made])
    configure(log, names.shards, retention_ms="60000")
    configure(log, names.control, cleanup_policy="delete")
    configure(log, topics.progress, cleanup_policy="compact", max_message_bytes="1000000")


def plant_files(folder: Path) -> dict[str, str]:
    """Make wrong files, and return the settings that name them."""
    data = folder / "data"
    (data / "0").mkdir(parents=True)
    (data / "0" / "CURRENT").touch()
    os.utime(data / "0" / "CURRENT", (time.time() - 7_200,) * 2)
    data.chmod(0o755)
    (folder / "secret").write_text("short")
    (folder / "tokens").write_text("no token\n")
    made = trustme.CA().issue_cert("localhost", not_after=datetime.datetime.now(datetime.UTC) + 3 * DAY)
    (folder / "tls.crt").write_bytes(made.cert_chain_pems[0].bytes())
    (folder / "tls.key").write_bytes(made.private_key_pem.bytes())
    return {
        "PENSTOCK_DATA_DIR": str(data),
        "PENSTOCK_SECRET_FILE": str(folder / "secret"),
        "PENSTOCK_HTTP_CERTIFICATE": str(folder / "tls.crt"),
        "PENSTOCK_HTTP_KEY": str(folder / "tls.key"),
    }


def test_one_run_finds_all_planted_faults(broker, topic_prefix, tmp_path: Path):
    topics = ClusterTopics(TopicNames(topic_prefix), 4, 8)
    names = topics.names
    with ExitStack() as stack:
        log = stack.enter_context(closing(KafkaLog(broker.bootstrap_servers)))
        plant_topics(log, topics)
        stack.enter_context(heartbeats(log, topics.heartbeats, 90_000))
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
        mounted = stack.enter_context(small_memory(tmp_path / "shm"))
        found = run(
            plant_files(tmp_path)
            | {
                "PENSTOCK_BOOTSTRAP_SERVERS": broker.bootstrap_servers,
                "PENSTOCK_PREFIX": topic_prefix,
                "PENSTOCK_SHARDS": "4",
                "PENSTOCK_DICTIONARIES": "grpc://127.0.0.1:1",
                "PENSTOCK_REGIONS_DIR": str(tmp_path / "shm"),
                "PENSTOCK_RDMA_DEVICE": "mlx5_9",
                "PENSTOCK_RDMA_REQUIRED": "true",
                "PENSTOCK_HTTP_PORT": str(taken),
            }
        )
    expected = {
        "open files": ["at most 1024 open files"],
        "shared memory": ["of 1 MiB free"] if mounted else [],
        "data directory": ["has mode 0755"],
        "secret": ["has 5 bytes"],
        "certificate": ["expires on"],
        "rdma": ["there is no RDMA device mlx5_9", "0 KiB of memory can be locked"],
        "port": [f"port {taken} is in use (PENSTOCK_HTTP_PORT)"],
        "topics": [
            f"{names.shards} has 3 partitions, expected 4",
            f"{names.control} has cleanup.policy=delete",
            f"{topics.progress} accepts records of 1000000 bytes",
            f"missing: {names.quarantine}",
        ],
        "retention": ["is kept for 60 s, the oldest checkpoint is 7,2"],
        "dictionary": ["grpc://127.0.0.1:1"],
        "clock skew": ["the clock of dispatcher d-0 differs by +"],
    }
    for check, texts in expected.items():
        for text in texts:
            assert any(text in each["text"] for each in found.get(check, ())), f"{check}: {text} not in {found}"
    assert sum(map(len, expected.values())) >= LEAST_PLANTED
    sound = set(found) - set(expected) - {"clock"}  # this machine's own clock may not be synchronized
    assert not sound, "nothing else is wrong"


def test_one_run_finds_a_broker_that_is_down_and_malformed_tokens(tmp_path: Path):
    settings = plant_files(tmp_path) | {
        "PENSTOCK_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "PENSTOCK_DICTIONARIES": "grpc://127.0.0.1:1",
    }
    [fault] = run(settings)["brokers"]
    assert "127.0.0.1:1" in fault["text"]
    assert "PENSTOCK_BOOTSTRAP_SERVERS" in fault["remedy"]
    settings["PENSTOCK_HTTP_TOKENS_FILE"] = str(tmp_path / "tokens")
    found = run(settings)
    assert any("line 1" in fault["text"] for each in found.values() for fault in each)
