"""One Spark session for all tests of this folder; each of them is marked `spark`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import StorageError
from penstock.spark.session import connector_jars, open_session

HERE = Path(__file__).parent
BOUND_S = 1_500  # of a test: a busy machine takes minutes to start Spark


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(BOUND_S))


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    try:
        kafka = bool(connector_jars())
    except StorageError:
        kafka = False  # the test that needs it says so
    session = open_session("penstock tests", master="local[2]", driver_memory="1500m", kafka=kafka, short=True)
    yield session
    session.stop()
