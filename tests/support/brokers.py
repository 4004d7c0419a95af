"""One real Kafka broker for each test session."""

from __future__ import annotations

import os
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.broker import Broker, kafka_jars
from penstock.broker.java import find_java
from penstock.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.containers import ContainerBroker

_numbers = count()
_MEMORY = Path("/dev/shm")


def _lacking() -> str:
    try:
        find_java()
        kafka_jars()
    except StorageError as error:
        return str(error)
    return ""


@pytest.fixture(scope="session")
def broker_jars() -> None:
    """Skip a test that starts a broker of its own if this machine has neither the jars nor the means to fetch them."""
    if lacking := _lacking():
        pytest.skip(lacking)


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker | ContainerBroker]:
    """Yield a running broker: from the jars, or in a container if this machine has neither the jars nor the means to
    fetch them. The test is skipped if it has no Docker daemon either.
    """
    if lacking := _lacking():
        yield from _broker_in_container(lacking)
        return
    parent = _MEMORY if os.access(_MEMORY, os.W_OK) else None
    with (
        tempfile.TemporaryDirectory(dir=parent, prefix="penstock-broker-") as directory,
        Broker(Path(directory, "node")) as running,
    ):
        yield running


def _broker_in_container(lacking: str) -> Iterator[ContainerBroker]:
    containers = pytest.importorskip("support.containers", reason=lacking, exc_type=ImportError)
    try:
        image = containers.kafka_image()
    except containers.MissingError as error:
        pytest.skip(f"{lacking}; {error}")
    with containers.container_broker(image) as running:
        yield running


@pytest.fixture
def topic_prefix() -> str:
    """Return a prefix that the topics of no other test have."""
    return f"test-{os.getpid()}-{next(_numbers)}-{time.time_ns()}"
