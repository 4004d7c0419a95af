"""Updates in a cluster on a real broker, while its services are killed: each is executed exactly once, and those with
patterns on the snapshot of the one before them. They add and remove.
"""

from __future__ import annotations

import time
from threading import Thread
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("confluent_kafka")

from penstock.cli.cluster.kills import service_of
from penstock.cli.cluster.local_cluster import LocalCluster
from penstock.client import Client
from penstock.errors import ConflictError, QueryError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("broker")
COUNT = """
INSERT {{ <urn:u{0}> <urn:count> ?n . [] <urn:of> <urn:u{0}> }} WHERE {{ SELECT (COUNT(*) AS ?n) {{ ?s <urn:count> ?o }} }} ;
DELETE {{ <urn:last> <urn:is> ?n . ?node <urn:at> ?n }} INSERT {{ <urn:last> <urn:is> ?next . [] <urn:at> ?next }}
WHERE {{ <urn:last> <urn:is> ?n . ?node <urn:at> ?n BIND(?n + 1 AS ?next) }}"""
DATA = "INSERT DATA {{ <urn:data> <urn:has> {} }} ; DELETE DATA {{ <urn:data> <urn:has> {} , {} }}"
WAIT_S = 240.0


class Updating:
    """Sends numbered updates, one after the other, until it is told to stop. `size`: number of triples that each
    removes and adds; None: it varies.
    """

    def __init__(self, client: Client, text: Callable[[int], str], size: int | None, pause_s: float = 0.0) -> None:
        self._client, self._text, self._size, self._pause_s = client, text, size, pause_s
        self._stop = False
        self.done = self.conflicts = 0
        self.error: BaseException | None = None
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop:
                try:
                    size = self._client.update(self._text(self.done))
                except ConflictError:  # other updates were stored during each of ten evaluations: nothing has changed
                    self.conflicts += 1
                    continue
                assert self._size in (None, size), size
                self.done += 1
                time.sleep(self._pause_s)
        except BaseException as error:  # noqa: BLE001 - the test raises it
            self.error = error

    def wait_for(self, count: int) -> None:
        deadline = time.monotonic() + WAIT_S
        while self.done < count:
            if self.error is not None:
                raise self.error
            assert time.monotonic() < deadline, f"{self.done} updates"
            time.sleep(0.01)

    def stop(self) -> None:
        self._stop = True
        self._thread.join(WAIT_S)
        if self.error is not None:
            raise self.error


def test_updates_are_executed_once_and_in_order_while_services_are_killed(
    broker, topic_prefix: str, tmp_path: Path
) -> None:
    killed = []
    with (
        LocalCluster(broker.bootstrap_servers, tmp_path, prefix=topic_prefix) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        client.update("INSERT DATA { <urn:last> <urn:is> 0 . [] <urn:at> 0 }")
        updating = Updating(client, COUNT.format, 6)
        data = Updating(client, lambda i: DATA.format(i, i - 1, i - 2), None, 0.5)
        try:
            updating.wait_for(5)
            for name in cluster.services:
                if service_of(name) in ("coordinator", "dictionary", "store", "engine"):
                    cluster.kill(name)
                    killed.append(name)
                    time.sleep(0.2)
                    cluster.watch()
                    began = time.monotonic()
                    updating.wait_for(updating.done + 5)
                    print(f"{name} killed: five updates after {time.monotonic() - began:.1f} s", flush=True)
        finally:
            updating.stop()
            data.stop()
        expected = [(f"urn:u{i}", i) for i in range(updating.done)]
        deadline = time.monotonic() + WAIT_S
        while True:
            rows = client.query(
                "SELECT ?s ?n (COUNT(?b) AS ?nodes) { ?s <urn:count> ?n . ?b <urn:of> ?s } GROUP BY ?s ?n"
            )
            found = sorted((int(row["n"]), str(row["s"]), int(row["nodes"])) for row in rows)
            if len(found) >= len(expected) or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        assert found == [(i, name, 1) for name, i in expected]
        last = client.query("SELECT ?s ?n ?node { ?s <urn:is> ?n OPTIONAL { ?node <urn:at> ?at } }")
        assert [(str(row["s"]), int(row["n"])) for row in last] == [("urn:last", updating.done)]
        [row] = client.query("SELECT (COUNT(*) AS ?all) (MAX(?n) AS ?last) { <urn:data> <urn:has> ?n }")
        assert (int(row["all"]), int(row["last"])) == (1, data.done - 1)
    assert {service_of(name) for name in killed} == {"coordinator", "dictionary", "store", "engine"}
    print(
        f"{len(expected)} updates with patterns and {data.done} of data ({updating.conflicts} conflicts) while {', '.join(killed)} were killed: 0 lost, 0 doubled, 0 out of order"
    )


def test_a_load_reads_a_file_of_the_query_engines_once(
    broker, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.ttl").write_text("<urn:a> <urn:p> 1, 2, [] .")
    (tmp_path / "secret.ttl").write_text("<urn:secret> <urn:p> 1 .")
    monkeypatch.setenv("PENSTOCK_LOAD_DIRECTORY", str(files))
    with (
        LocalCluster(broker.bootstrap_servers, tmp_path / "cluster", prefix=topic_prefix) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
    ):
        text = "LOAD <file:a.ttl> INTO GRAPH <urn:g> ; INSERT { ?o <urn:of> ?s } WHERE { GRAPH <urn:g> { ?s ?p ?o } "
        assert client.update(text + "FILTER(isBlank(?o)) }") == 4
        deadline = time.monotonic() + WAIT_S
        while not client.query("ASK { ?node <urn:of> ?s }") and time.monotonic() < deadline:
            time.sleep(0.2)  # engines read the committed update
        [row] = client.query("SELECT (COUNT(*) AS ?n) (COUNT(DISTINCT ?o) AS ?m) { GRAPH <urn:g> { ?s ?p ?o } }")
        assert (int(row["n"]), int(row["m"])) == (3, 3)
        assert client.query("ASK { ?node <urn:of> <urn:a> . GRAPH <urn:g> { <urn:a> <urn:p> ?node } }")
        with pytest.raises(QueryError, match="there is no file") as caught:
            client.update("INSERT DATA { <urn:b> <urn:p> 1 } ;\n LOAD <file:../secret.ttl>")
        assert (caught.value.line, caught.value.column) == (2, 2)
        assert not client.query("ASK { <urn:b> ?p ?o }")
