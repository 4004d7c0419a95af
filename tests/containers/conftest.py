"""Fixtures of the tests with containers. They skip a test where there is no Docker daemon, or where it lacks an image."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import containers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _found(what: Callable[[], str]) -> str:
    try:
        return what()
    except containers.MissingError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def image() -> str:
    """Return the name of Penstock's image."""
    return _found(containers.penstock_image)


@pytest.fixture(scope="session")
def kafka_image() -> str:
    """Return the name of the broker's image."""
    return _found(containers.kafka_image)


@pytest.fixture
def broker_in_container(kafka_image: str) -> Iterator[containers.ContainerBroker]:
    """Yield a broker in a container."""
    with containers.container_broker(kafka_image) as running:
        yield running
