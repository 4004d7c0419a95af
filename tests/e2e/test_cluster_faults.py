"""A cluster of processes on a real broker, and what happens around it: brokers, groups, disks, garbage,
foreign clients.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import closing

import pytest

pytest.importorskip("confluent_kafka")

from penstock.broker import Broker
from penstock.cli.cluster.local_cluster import Supervised
from penstock.client import Client
from penstock.log import START, Partition, Record, Topic, TransientError
from penstock.log.kafka import KafkaLog
from penstock.log.kafka import writers as kafka_writers
from support.cluster_load import BOUND_S, Load, small
from support.packages import program

pytestmark = pytest.mark.xdist_group("broker")


def test_adaptors_come_and_go_among_garbage(broker, topic_prefix, tmp_path):
    """A second member joins the group, and leaves it without a word."""
    load = Load(broker.bootstrap_servers, topic_prefix, partitions=3)
    with small(broker.bootstrap_servers, topic_prefix, tmp_path) as cluster:
        with Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client:
            load.prepare(client)
        load.push(100, 2.0)
        load.garbage(b"\xff\xfe no RDF")
        first = cluster.services["adaptor-0"]
        settings = first.settings | {"PENSTOCK_INSTANCE": "adaptor-1"}
        cluster.services["adaptor-1"] = Supervised("adaptor-1", first.module, settings)
        cluster.watch()
        load.push(300, 8.0)
        load.garbage(b"<http://x/a> <http://x/b>")
        cluster.kill("adaptor-1")
        del cluster.services["adaptor-1"]
        load.push(300, 3.0)
        load.check(cluster)
        letters = load.letters()
    assert {letter.value for letter in letters} == {b"\xff\xfe no RDF", b"<http://x/a> <http://x/b>"}
    assert all(letter.headers for letter in letters), "with the reason"


def test_a_broker_that_is_killed_and_comes_back_loses_and_doubles_nothing(tmp_path, topic_prefix, broker_jars):
    del broker_jars  # only for its means: this one is killed
    with Broker(tmp_path / "node") as own:
        load = Load(own.bootstrap_servers, topic_prefix)
        with small(own.bootstrap_servers, topic_prefix, tmp_path / "cluster") as cluster:
            with Client(own.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client:
                load.prepare(client)
            load.push(200, 2.0)
            own.kill()
            time.sleep(1.0)
            own.start()
            load.push(200, 2.0)
            load.check(cluster)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 16 KiB; `grow` makes it large enough."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = shutil.which("mount") and os.geteuid() == 0
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    if not mounted or subprocess.run(command, check=False, capture_output=True).returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    yield folder, lambda: subprocess.run(["mount", "-o", "remount,size=256m", str(folder)], check=True)
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("outage_s", [1.0, pytest.param(150.0, marks=pytest.mark.long)])
def test_what_a_writer_holds_while_no_broker_answers_is_written_once(broker_jars, tmp_path, monkeypatch, outage_s):
    """And nothing is given up, however long that takes: whoever flushes decides how long it waits."""
    del broker_jars  # only for its means: this one is killed
    records = [Record("t", b"%d" % i) for i in range(3)]
    with Broker(tmp_path / "node") as own, closing(KafkaLog(own.bootstrap_servers)) as log:
        log.create([Topic("t")])
        writer = log.writer()
        writer.append(records[:1])
        own.kill()
        monkeypatch.setattr(kafka_writers, "_FLUSH_S", 1.0)
        with pytest.raises(TransientError, match="2 records are not acknowledged"):
            writer.append(records[1:])
        time.sleep(outage_s)
        own.start()
        monkeypatch.setattr(kafka_writers, "_FLUSH_S", BOUND_S)
        writer.flush()
        reader, read = log.reader({Partition("t", 0): START}), []
        while not reader.caught_up():
            read += [message.value for message in reader.poll(100, 0.1)]
    assert read == [record.value for record in records]


def test_a_full_disk_at_the_checkpoint_stops_nothing(broker, topic_prefix, tmp_path, small_disk):
    """What cannot be kept is read again from the log; once there is room, there is a checkpoint."""
    disk, grow = small_disk
    load = Load(broker.bootstrap_servers, topic_prefix)
    cluster = small(broker.bootstrap_servers, topic_prefix, tmp_path / "cluster")
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster" / "engine-0").symlink_to(disk, target_is_directory=True)
    engine_log = tmp_path / "cluster" / "engine-0.log"
    with cluster:
        with Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client:
            load.prepare(client)
        load.push(200, 2.0)
        _wait(lambda: b"no checkpoint" in engine_log.read_bytes(), cluster)
        assert cluster.services["engine-0"].starts == 1
        cluster.kill("engine-0")
        load.push(200, 2.0)
        grow()
        cluster.watch()
        load.check(cluster)
        _wait((disk / "CURRENT").exists, cluster)


def _wait(condition, cluster):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        cluster.watch()
        time.sleep(0.1)


def test_kcat_produces_events_and_reads_the_results(broker, topic_prefix, tmp_path):
    kcat = program("kcat")
    if kcat is None:
        pytest.skip("kcat is not installed (the Debian package of that name), and cannot be")
    load = Load(broker.bootstrap_servers, topic_prefix)

    def produce(data: bytes, *headers: str) -> None:
        options = [part for header in headers for part in ("-H", header)]
        command = [kcat, "-P", "-b", broker.bootstrap_servers, "-t", load.names.events("s"), "-D", "\\0", *options]
        subprocess.run(command, input=data, check=True, timeout=60)

    with small(broker.bootstrap_servers, topic_prefix, tmp_path) as cluster:
        with Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client:
            load.prepare(client, json_only=True)
        turtle = b"@prefix x: <http://x/> .\nx:1 x:p 1, 2 .\nx:2 x:p [ x:q 3 ] ."
        produce(turtle, "content-type=text/turtle", "timestamp=1100")
        nested = b'{"@id": "http://x/1", "http://x/p": 4}'
        produce(nested, "content-type=application/ld+json", "timestamp=1200")
        produce(b"<http://x/3> <http://x/p> <http://x/4> .", "timestamp=2600")
        command = [kcat, "-C", "-b", broker.bootstrap_servers, "-t", load.names.results, "-e", "-q", "-o", "beginning"]
        command += ["-X", "isolation.level=read_committed"]
        seen: dict[tuple[str, int], dict] = {}

        def both() -> bool:
            read = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.splitlines()
            lines = [json.loads(line) for line in read]
            assert len({(line["query"], line["time"]) for line in lines}) == len(lines), "doubled"
            seen.update({(line["query"], line["time"]): line for line in lines})
            return ("busy", 1500) in seen and ("fresh", 2000) in seen

        _wait(both, cluster)
    counted = {row["s"]["value"]: row["n"]["value"] for row in seen["busy", 1500]["results"]["bindings"]}
    assert counted == {"http://x/1": "3", "http://x/2": "1"}
    assert len(seen["fresh", 2000]["results"]["bindings"]) == 4
