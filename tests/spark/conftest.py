"""One Spark session for all tests of this folder; each of them is marked `spark`."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark.session import open_session

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark():
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    session = open_session("penstock tests", master="local[2]", driver_memory="1500m")
    yield session
    session.stop()
