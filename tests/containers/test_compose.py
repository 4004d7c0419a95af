"""The compose file: all services become healthy, and answer what the embedded engine answers, while some are killed."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from testcontainers.compose import DockerCompose

from penstock import Client
from penstock.http.security import Role, new_token
from support import containers
from support.cluster_load import Load

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.timeout(containers.BUILD_S), pytest.mark.xdist_group("containers")]
FOREIGN = {"prometheus", "grafana"}
SERVICES = {name: each for name, each in containers.compose()["services"].items() if name not in FOREIGN}
BROKER = "localhost:29092"
COORDINATORS = "http://localhost:8081,http://localhost:8082"
ENGINES = ("http://localhost:8083", "http://localhost:8084")
STORED = {"http://x/g": b"".join(b"<http://x/%d> <http://x/in> <http://x/room%d> .\n" % (i, i % 2) for i in range(5))}
PLACES = (
    "REGISTER QUERY places AS SELECT ?r (COUNT(*) AS ?n) FROM STREAM <http://x/s> [RANGE 2s STEP 1s] "
    "FROM NAMED <http://x/g> WHERE { ?s <http://x/p> ?v . GRAPH <http://x/g> { ?s <http://x/in> ?r } } GROUP BY ?r"
)


class Running:
    """The started services, with a token of role admin."""

    def __init__(self, project: Any, token: str) -> None:
        self.project, self.token = project, token

    def container(self, service: str) -> Any:
        return containers.daemon().containers.get(self.project.get_container(service).ID)

    def kill(self, service: str) -> None:
        """Kill a service's container, start it again, and wait until it is healthy."""
        container = self.container(service)
        container.kill()
        container.start()
        containers.until(lambda: self.health(service) == "healthy", f"{service} is healthy again", 300.0)

    def health(self, service: str) -> str:
        found: str = self.container(service).attrs["State"]["Health"]["Status"]
        return found

    def watch(self) -> None:
        """Check that no container has ended."""
        stopped = [name for name in SERVICES if self.container(name).status not in ("running", "restarting")]
        assert not stopped, f"ended: {stopped}"


@pytest.fixture
def running(image: str, kafka_image: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    for port in published_ports():
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"port {port} of the compose file is in use")
    token, line = new_token("test", Role.ADMIN)
    monkeypatch.setenv("PENSTOCK_IMAGE", image)
    monkeypatch.setenv("KAFKA_IMAGE", kafka_image)
    monkeypatch.setenv("PENSTOCK_SECRET", "a secret of stores and engines")
    monkeypatch.setenv("PENSTOCK_TOKENS", line)
    monkeypatch.setenv("PENSTOCK_METRICS_TOKEN", "unused")
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "penstock-tests")
    project = DockerCompose(containers.ROOT, services=list(SERVICES))
    try:
        project.start()
        yield Running(project, token)
    finally:
        project.stop()


def published_ports() -> list[int]:
    return [int(port.split(":")[-2]) for service in SERVICES.values() for port in service.get("ports", ())]


def test_every_service_is_healthy_and_no_answer_is_lost_doubled_or_different(running: Running):
    assert {running.health(name) for name in SERVICES} == {"healthy"}
    for url in (*COORDINATORS.split(","), *ENGINES):
        assert httpx.get(f"{url}/metrics", timeout=20).status_code == 401
    load = Load(BROKER, "penstock", graphs=STORED)
    load.queries["places"] = PLACES
    with Client(BROKER, COORDINATORS, ",".join(ENGINES), token=running.token) as client:
        load.prepare(client)
        load.push(300, 5.0)
        for service in ("store-0", "engine-1", "coordinator-0", "dispatcher-0"):
            running.kill(service)
            load.push(300, 3.0)
        assert load.check(running) > 20
        count = client.query("SELECT (COUNT(*) AS ?n) WHERE { GRAPH <http://x/g> { ?s ?p ?o } }")
        assert [int(row["n"].toPython()) for row in count] == [5]
