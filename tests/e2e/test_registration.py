"""A cluster that is used by a foreign client alone: kcat declares, registers, produces, reads what came of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest

from penstock.broker import Broker, kafka_jars
from penstock.broker.java import find_java
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.errors import StorageError

pytestmark = pytest.mark.xdist_group("broker")
IRI, MADE = "http://x/s", "http://x/made"
PUBLISH = (
    f"REGISTER STREAM <{MADE}> AS CONSTRUCT {{ ?o <urn:of> ?s }} FROM STREAM <{IRI}> [RANGE 1s STEP 1s] "
    "WHERE { ?s <urn:p> ?o }"
)
READ = f"REGISTER QUERY r AS SELECT ?o FROM STREAM <{MADE}> [RANGE 2s STEP 1s] WHERE {{ ?o <urn:of> ?s }} ORDER BY ?o"
BOUND_S = 120.0


class Kcat:
    def __init__(self, servers: str) -> None:
        self._base = [shutil.which("kcat") or "", "-b", servers]

    def produce(self, topic: str, key: str, value: str | None, **headers: str) -> None:
        options = [part for name, text in headers.items() for part in ("-H", f"{name}={text}")]
        command = [*self._base, "-P", "-t", f"penstock.{topic}", "-Z", "-D", "\\x01", "-K", "|", *options]
        subprocess.run(command, input=f"{key}|{value or ''}\x01".encode(), check=True, timeout=60)

    def read(self, topic: str) -> list[tuple[str, str]]:
        """(key, value) of every committed record."""
        command = [*self._base, "-C", "-t", f"penstock.{topic}", "-e", "-q", "-X", "isolation.level=read_committed"]
        found = subprocess.run([*command, "-f", "%k\t%s\n"], capture_output=True, check=True, timeout=60, text=True)
        return [tuple(line.split("\t", 1)) for line in found.stdout.splitlines()]

    def keys(self, start: str) -> list[str]:
        """The keys of results that start so."""
        return [key for key, _ in self.read("results") if key.startswith(start)]

    def wait(self, topic: str, key: str, *, gone: bool = False) -> str:
        """The last value of a key: once it has one or, of a key that is to go, none any more."""
        deadline = time.monotonic() + BOUND_S
        while time.monotonic() < deadline:
            found = [value for each, value in self.read(topic) if each == key]
            if found and bool(found[-1]) != gone:
                return found[-1]
            time.sleep(0.2)
        raise AssertionError(f"{topic} has no {key}: {self.read(topic)}")


def test_kcat_declares_registers_and_reads_results_of_a_derived_stream(tmp_path):
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        pytest.skip(str(error))
    with Broker(tmp_path / "broker") as broker, LocalCluster(broker.bootstrap_servers, tmp_path / "c", engines=1):
        kcat = Kcat(broker.bootstrap_servers)
        kcat.produce("streams", "s", json.dumps({"iri": IRI, "batch_ms": 500}))
        kcat.produce("queries", "p", PUBLISH)
        kcat.produce("queries", "r", READ)
        kcat.produce("queries", "bad", "REGISTER QUERY bad AS SELECT *\nWHERE { ?s ?p }")
        assert json.loads(kcat.wait("status", "query r 4"))["point"] is None
        refused = json.loads(kcat.wait("status", "refused query bad"))
        assert (refused["error"], refused["line"]) == ("QueryError", 2)
        for time_ms, data in ((100_200, "<urn:a> <urn:p> <urn:b> ."), (101_200, "<urn:a> <urn:p> <urn:c> .")):
            kcat.produce("events.s", "k", data, timestamp=str(time_ms))
        kcat.produce("events.s", "k", None, heartbeat="103000")
        last = json.loads(kcat.wait("results", "r@103000"))
        assert [row["o"]["value"] for row in last["results"]["bindings"]] == ["urn:c"]
        assert sorted(kcat.keys("r@")) == ["r@101000", "r@102000", "r@103000"]
        kcat.produce("queries", "r", None)
        kcat.wait("status", "query r 4", gone=True)
        # The engine reads the command and the events from two topics: an instant or two may still be answered.
        for end_ms in range(105_000, 145_000, 2_000):
            before = kcat.keys("r@")
            kcat.produce("events.s", "k", "<urn:a> <urn:p> <urn:d> .", timestamp=str(end_ms - 1_700))
            kcat.produce("events.s", "k", None, heartbeat=str(end_ms))
            kcat.wait("results", f"p@{end_ms}")
            if kcat.keys("r@") == before:
                return
        raise AssertionError(f"the stopped query answers on: {kcat.keys('r@')}")
