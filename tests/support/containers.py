"""A Docker daemon, and images from its registry or from this repository. What is missing is a reason to skip a test."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import docker
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from penstock.broker.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = "docker-compose.yml"
BASE_IMAGE = "debian:trixie-slim"
BUILD_S = 3_600
"""Time limit of a test that may have to build the image, in s."""
_START_S = 120.0


class MissingError(Exception):
    """This machine has no daemon, or no image. The message says what is missing."""


@cache
def daemon() -> docker.DockerClient:
    """Return a client of the daemon. MissingError if there is none."""
    try:
        client = docker.from_env()
        client.ping()
    except docker.errors.DockerException as error:
        raise MissingError(f"no Docker daemon answers (DOCKER_HOST names it): {error}") from error
    testcontainers_config.ryuk_disabled = True  # contexts remove the containers, without an image from a registry
    return client


def compose() -> dict[str, Any]:
    """Return the content of the compose file."""
    found: dict[str, Any] = yaml.safe_load((ROOT / COMPOSE_FILE).read_text(encoding="utf-8"))
    return found


def pulled(image: str) -> str:
    """Return the name of an image, pulled if the daemon lacks it. MissingError if it cannot be pulled."""
    client = daemon()
    try:
        client.images.get(image)
    except docker.errors.ImageNotFound:
        try:
            client.images.pull(image)
        except docker.errors.APIError as error:
            raise MissingError(f"the daemon cannot pull {image}: {error.explanation or error}") from error
    return image


@cache
def penstock_image() -> str:
    """Return the image that PENSTOCK_IMAGE names, else build it from the Dockerfile."""
    if given := os.environ.get("PENSTOCK_IMAGE"):
        return pulled(given)
    client = daemon()
    pulled(BASE_IMAGE)
    name = "penstock:tests"
    client.images.build(path=str(ROOT), tag=name, rm=True)
    return name


def kafka_image() -> str:
    """Return the image of the broker: the one that KAFKA_IMAGE names, else that of the compose file."""
    default = compose()["services"]["kafka"]["image"].removeprefix("${KAFKA_IMAGE:-").removesuffix("}")
    return pulled(os.environ.get("KAFKA_IMAGE") or default)


class ContainerBroker(NamedTuple):
    """A running broker."""

    bootstrap_servers: str


@contextmanager
def container_broker(image: str) -> Iterator[ContainerBroker]:
    """Run a broker of one node in a container, with the settings of the compose file. `image`: see `kafka_image`."""
    port = free_port()
    settings = dict(compose()["services"]["kafka"]["environment"])
    settings["KAFKA_LISTENERS"] = f"INSIDE://:9092,OUTSIDE://:{port},CONTROLLER://:9093"
    settings["KAFKA_ADVERTISED_LISTENERS"] = f"INSIDE://localhost:9092,OUTSIDE://127.0.0.1:{port}"
    container = DockerContainer(image)
    for name, value in settings.items():
        container.with_env(name, value)
    container.with_bind_ports(port, port)
    with container:
        servers = f"127.0.0.1:{port}"
        until(lambda: _answers(servers), "the broker answers")
        yield ContainerBroker(servers)


def _answers(servers: str) -> bool:
    try:
        return bool(AdminClient({"bootstrap.servers": servers, "log_level": 0}).list_topics(timeout=2.0).brokers)
    except KafkaException:
        return False


def until(condition: Callable[[], bool], what: str, limit_s: float = _START_S) -> None:
    """Wait until a condition holds. AssertionError after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        time.sleep(0.2)
