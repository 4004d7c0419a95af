"""The image: an unprivileged user, a read-only root, health, an orderly end, and state that outlives a container."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from testcontainers.core.container import DockerContainer

from support import containers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker.models.containers import Container

pytestmark = [pytest.mark.timeout(containers.BUILD_S), pytest.mark.xdist_group("containers")]
STREAM = "/streams/" + quote("http://x/s", safe="")
QUERY = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s <http://x/p> ?o }"
RESTRICTED: dict[str, Any] = {
    "read_only": True,
    "cap_drop": ["ALL"],
    "security_opt": ["no-new-privileges"],
    "tmpfs": {"/tmp": ""},
}


def once(image: str, *command: str, **options: Any) -> tuple[int, str]:
    """Run a command in a container. Returns its exit code and its output."""
    container = containers.daemon().containers.run(image, list(command), detach=True, **options)
    try:
        code = container.wait(timeout=120)["StatusCode"]
        return code, container.logs().decode()
    finally:
        container.remove(force=True)


@contextmanager
def served(image: str, volume: str) -> Iterator[tuple[Container, httpx.Client]]:
    """Run `penstock serve` as a restricted pod does, with its data in a volume."""
    container = DockerContainer(image)
    container.with_command("serve --host 0.0.0.0 --port 8080 --insecure --data-dir /data/engine")
    container.with_exposed_ports(8080)
    options = {name: value for name, value in RESTRICTED.items() if name != "tmpfs"}
    container.with_tmpfs_mount("/tmp")
    container.with_volume_mapping(volume, "/data", "rw")
    container.with_kwargs(**options)
    with container:
        url = f"http://{container.get_container_host_ip()}:{container.get_exposed_port(8080)}"
        with httpx.Client(base_url=url, timeout=30) as client:
            containers.until(lambda: is_live(client), "the service answers")
            yield container.get_wrapped_container(), client


def is_live(client: httpx.Client) -> bool:
    try:
        return client.get("/health/live").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def volume(image: str) -> Iterator[str]:
    made = containers.daemon().volumes.create()
    yield made.name
    made.remove(force=True)


def test_the_image_runs_commands_as_an_unprivileged_user(image: str):
    assert once(image, "--help", **RESTRICTED)[0] == 0
    code, text = once(image, "-c", "import os; print(os.getuid())", entrypoint="python3", **RESTRICTED)
    assert (code, text.strip()) == (0, "10001")


def test_a_service_without_brokers_ends_with_the_name_of_the_setting(image: str):
    code, text = once(image, "dispatcher", **RESTRICTED)
    assert code != 0
    assert "PENSTOCK_BOOTSTRAP_SERVERS" in text


def test_an_engine_answers_is_healthy_ends_in_order_and_continues_in_a_new_container(image: str, volume: str):
    with served(image, volume) as (container, client):
        declaration = {"batch_ms": 1000, "timing": "all"}
        assert client.put(STREAM, content=json.dumps(declaration)).is_success
        assert client.post(f"{STREAM}/advance?timestamp=0").is_success
        assert client.put("/queries/q", content=QUERY).is_success
        assert client.post(f"{STREAM}/events?timestamp=500", content='<http://x/a> <http://x/p> "first" .').is_success
        assert health(container) == "healthy"
        container.stop(timeout=30)
        assert container.wait()["StatusCode"] == 0
    with served(image, volume) as (_, client):
        assert client.post(f"{STREAM}/events?timestamp=1500", content='<http://x/a> <http://x/p> "next" .').is_success
        assert client.post(f"{STREAM}/advance?timestamp=2000").is_success
        assert answers(client, 2) == {1000: ["first"], 2000: ["next"]}


def health(container: Container) -> str:
    def status() -> str:
        container.reload()
        found: str = container.attrs["State"]["Health"]["Status"]
        return found

    containers.until(lambda: status() != "starting", "Docker has checked the container's health")
    return status()


def answers(client: httpx.Client, count: int) -> dict[int, list[str]]:
    """Return the values of the query's variable by instant, from the stream of its results."""
    found: dict[int, list[str]] = {}
    with client.stream("GET", "/queries/q/results", headers={"last-event-id": "0"}) as live:
        for line in live.iter_lines():
            if line.startswith("data: "):
                answer = json.loads(line[6:])
                found[answer["time"]] = [row["o"]["value"] for row in answer["results"]["bindings"]]
            if len(found) == count:
                return found
    raise AssertionError(f"the stream of results ended after {found}")
