"""Insertions that are asked for again because no answer came."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.log import TransientError
from penstock.services.coordinator import insertion_writer
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = "INSERT DATA { _:a <http://x/p> _:b . _:b <http://x/p> 1 }"
DOCUMENT = b"_:a <http://x/q> <http://x/o> ."


@pytest.fixture
def cluster() -> Iterator[SmallCluster]:
    made = SmallCluster()
    yield made
    made.close()


def stored(cluster: SmallCluster) -> int:
    cluster.run()
    return len(list(cluster.engines["e0"].one_shot.query("SELECT * { ?s ?p ?o }", None, None, None)))


def take_over(cluster: SmallCluster) -> None:
    """The coordinator goes, and another one begins with what the log has."""
    cluster.coordinator.close()
    cluster.restart_coordinator()


def test_blank_nodes_of_a_request_that_is_made_again_are_stored_once(cluster: SmallCluster):
    assert [cluster.coordinator.update(TEXT, request="one") for _ in range(2)] == [2, 2]
    assert stored(cluster) == 2
    take_over(cluster)
    assert cluster.coordinator.update(TEXT, request="one") == 2
    assert [cluster.coordinator.load(DOCUMENT, "nt", request="two").triples for _ in range(2)] == [1, 1]
    assert stored(cluster) == 3


def test_other_requests_and_requests_without_a_name_make_blank_nodes_anew(cluster: SmallCluster):
    for request in ("one", "two", None, None):
        cluster.coordinator.update(TEXT, request=request)
    assert stored(cluster) == 8


def test_a_request_whose_transaction_failed_is_not_taken_for_done(
    cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch
):
    assert cluster.coordinator._active is not None
    monkeypatch.setattr(cluster.coordinator._active.writer, "commit", _fail)
    with pytest.raises(TransientError):
        cluster.coordinator.update(TEXT, request="one")
    cluster.run()
    assert cluster.coordinator.update(TEXT, request="one") == 2
    assert stored(cluster) == 2


def _fail(*_: object) -> None:
    raise TransientError("the broker is unavailable")


def test_requests_between_which_others_have_no_name_are_retained(
    cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch
):
    """Their numbers were keys modulo the maximum: "two" replaced "one" in the topic, and its retry was stored again."""
    monkeypatch.setattr(insertion_writer, "RETAINED_DONE", 2)
    for request in ("one", None, "two"):
        cluster.coordinator.update(TEXT, request=request)
    take_over(cluster)
    assert cluster.coordinator._active is not None
    assert cluster.coordinator._active.insertions.completed.names() == ["one", "two"]
    assert cluster.coordinator.update(TEXT, request="one") == 2
    assert stored(cluster) == 6


def test_only_the_latest_requests_are_retained(cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(insertion_writer, "RETAINED_DONE", 3)
    for i in range(5):
        cluster.coordinator.update(TEXT, request=str(i))
    take_over(cluster)
    assert cluster.coordinator._active is not None
    assert cluster.coordinator._active.insertions.completed.names() == ["2", "3", "4"]
    for i in (4, 3, 2):
        cluster.coordinator.update(TEXT, request=str(i))
    assert stored(cluster) == 10
    cluster.coordinator.update(TEXT, request="0")
    assert stored(cluster) == 12
