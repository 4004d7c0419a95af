"""Spark's adaptor in a cluster of processes, its driver killed as by a power failure: nothing lost, doubled,
different.
"""

from __future__ import annotations

import socket
import time

import pytest

from e2e.test_cluster_kills import kill_while_adaptors_filter
from e2e.test_ingest_kafka import Cluster, expected, wait
from penstock.cli.cluster import demo_cluster
from penstock.cli.cluster.local_cluster import AdaptorKind
from penstock.errors import StorageError
from penstock.log import Record
from penstock.spark.session import connector_jars
from support.brokers import broker, topic_prefix  # noqa: F401 - fixtures

BOUND_S = 400.0  # a busy machine starts Spark for minutes


@pytest.fixture
def cluster(broker, topic_prefix):  # noqa: F811
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    try:
        connector_jars()
    except StorageError as error:
        pytest.skip(str(error))
    made = Cluster(broker.bootstrap_servers, topic_prefix)
    yield made
    made.end()


def test_a_driver_killed_under_load_loses_and_doubles_nothing(cluster, tmp_path):
    """Events to batches; one in a hundred is garbage, and comes out as a dead letter."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = {
        "PENSTOCK_DICTIONARIES": f"grpc://127.0.0.1:{port}",
        "PENSTOCK_CHECKPOINT": str(tmp_path / "checkpoint"),
        "PENSTOCK_SPARK_MASTER": "local[2]",
        "PENSTOCK_MAX_EVENTS": "300",  # many micro-batches, so that it dies in one
    }
    cluster.service("dictionary", PENSTOCK_LISTEN=f"127.0.0.1:{port}")
    cluster.service("dispatcher")
    driver = cluster.service("adaptor.spark", **settings)
    times, garbage = [1_000], 0

    def produce_until(condition, most):
        nonlocal garbage
        deadline = time.monotonic() + BOUND_S
        while not condition():
            assert time.monotonic() < deadline
            if len(times) < most:  # what waits must not grow for ever where Spark starts slowly
                chunk = list(range(times[-1] + 7, times[-1] + 7 * 100, 7))
                cluster.produce(chunk)
                times.extend(chunk)
                cluster.writer.append([Record(cluster.names.events("s"), b"garbage %d" % garbage)])
                garbage += 1
            time.sleep(0.1)

    cluster.produce(times)
    produce_until(lambda: cluster.closed() > 20, 5_000)
    driver.kill()
    driver.wait()
    at_kill = cluster.closed()
    driver = cluster.service("adaptor.spark", **settings)
    produce_until(lambda: cluster.closed() > at_kill + 20, len(times) + 5_000)
    now = (times[-1] // 100 + 3) * 100
    cluster.produce([now])
    wait(lambda: cluster.closed() >= now // 100 - 2, "everything has come through", BOUND_S)
    assert cluster.batches() == expected(times)[0]
    assert cluster.read(cluster.names.late) == []
    letters = cluster.read(cluster.names.dead_letter)
    assert {letter.data for letter in letters} == {b"garbage %d" % i for i in range(garbage)}
    driver.terminate()
    assert driver.wait(BOUND_S) == 0


@pytest.mark.usefixtures("cluster")
def test_the_demo_with_its_driver_killed_has_every_result_once(tmp_path):
    verdict = demo_cluster.demo_cluster(
        hours=6, kills=1, victims=["adaptor-0"], directory=tmp_path, adaptor=AdaptorKind.spark
    )
    assert verdict.killed == {"adaptor-0": 1}
    assert verdict.good, str(verdict)


@pytest.mark.long
@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.usefixtures("cluster")
def test_each_service_is_killed_while_sparks_adaptor_discards(broker, topic_prefix, tmp_path, monkeypatch, seed):  # noqa: F811
    monkeypatch.setenv("PENSTOCK_DISCARD_AFTER_S", "0.5")
    prefix = f"{topic_prefix}-kills"
    kill_while_adaptors_filter(broker.bootstrap_servers, prefix, tmp_path, seed, each=1, adaptor=AdaptorKind.spark)
