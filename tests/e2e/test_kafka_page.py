"""Every example of docs/kafka.md, run on a real broker and a cluster, in the order of the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource
from tests.support.packages import program

from penstock.broker import Broker, kafka_jars
from penstock.broker.java import find_java
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.xdist_group("broker")
PAGE = (Path(__file__).resolve().parents[2] / "docs/kafka.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(sh|python|json)[^\n]*\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
BOUND_S = 120.0
EXPECTED = [
    "penstock.streams -k readings", "penstock.queries -k warm", "echo 'warm|'", "-t penstock.status", "penstock.events.readings",
    "producer.flush", "-t penstock.results", '{"query"', "consumer.poll", "not RDF", "-t penstock.dead-letter", "incremental_alter_configs",
]  # fmt: skip


class Shell:
    """Runs blocks with the broker's address in place of the page's."""

    def __init__(self, folder: Path, bootstrap_servers: str) -> None:
        self._folder = folder
        self._servers = bootstrap_servers

    def run(self, block: tuple[str, str]) -> str:
        language, text = block
        text = text.replace("localhost:9092", self._servers)
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-euo", "pipefail", "-c", text]
        done = subprocess.run(
            command,
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def until(self, block: tuple[str, str], good: Callable[[str], bool]) -> str:
        """Run a block that reads until it shows what it should."""
        deadline = time.monotonic() + BOUND_S
        while not good(shown := self.run(block)):
            assert time.monotonic() < deadline, shown
            time.sleep(0.2)
        return shown


def retention_of(broker: Broker, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    [future] = admin.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, topic)]).values()
    return future.result()["retention.ms"].value


def test_the_page_has_the_examples_that_this_module_runs():
    assert len(BLOCKS) == len(EXPECTED)
    for (_, text), part in zip(BLOCKS, EXPECTED, strict=True):
        assert part in text


def test_every_example_works_on_a_broker(tmp_path):
    if program("kcat") is None:
        pytest.skip("kcat is not installed (the Debian package of that name), and cannot be")
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        pytest.skip(str(error))
    declare, register, stop, status, events, producer, results, record, consumer, refused, letters, retention = BLOCKS
    with Broker(tmp_path / "broker") as broker, LocalCluster(broker.bootstrap_servers, tmp_path / "c", engines=1):
        shell = Shell(tmp_path, broker.bootstrap_servers)
        shell.run(declare)
        shell.run(register)
        standing = shell.until(status, lambda shown: "query warm" in shown)
        assert json.loads(standing.splitlines()[-1][standing.splitlines()[-1].index("{") :])["status"] == "standing"
        shell.run(events)
        shown = shell.until(results, lambda shown: "warm@1700000010000" in shown)
        key, _, line = shown.splitlines()[-1].partition(" ")
        found, promised = json.loads(line), json.loads(record[1])
        assert key == f"{found['query']}@{found['time']}" == f"{promised['query']}@{promised['time']}"
        assert {**found, "snapshot": 0, "attempt": 1} == promised
        shell.run(producer)
        printed = shell.run(consumer).splitlines()
        assert [int(each.split()[0]) for each in printed] == sorted({int(each.split()[0]) for each in printed})
        assert printed[-1].startswith("1700000015000 ")
        assert "http://ex.org/s3" in printed[-1]
        assert "http://ex.org/s4" not in printed[-1]
        shell.run(refused)
        both = shell.until(letters, lambda shown: "not RDF" in shown and "watermark=" in shown)
        assert "reason=late: its time 1700000001500 is not after the watermark 1700000015000" in both
        assert "stream=http://ex.org/readings" in both
        assert "source=penstock.events.readings/0/" in both
        assert "content-type=text/turtle" in both
        shell.run(retention)
        assert retention_of(broker, "penstock.results") == "604800000"
        shell.run(stop)
        shell.until(status, lambda shown: not re.search(r"^query warm \d+ +\{", shown.splitlines()[-1]))
