"""The leases of an engine on stores."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.remote.control_connection import ControlError
from penstock.remote.store_links import StoreLinks


class Link:
    """A link to a store that no longer has snapshots before `oldest`."""

    def __init__(self, oldest: int) -> None:
        self.oldest, self.asked = oldest, []

    def lease(self, engine: str, snapshot: int, lease_ms: int) -> tuple[int, dict[int, int]]:
        self.asked.append(snapshot)
        if snapshot < self.oldest:
            raise ControlError(f"snapshot {snapshot} cannot be read any more", "refused")
        return snapshot, {0: 7}

    def plane(self) -> SimpleNamespace:
        return SimpleNamespace(transport=lambda node: "tcp")

    def close(self) -> None:
        return


class Graph:
    """A graph at snapshot 26 with an open view of snapshot 10."""

    snapshot = 26
    leased: int | None = None

    def attach(self, node: int, plane: object, shards: object = None) -> None:
        return

    def detach(self, node: int) -> None:
        return

    def lease(self, snapshot: int, until: float) -> None:
        self.leased = snapshot

    def oldest_needed(self, otherwise: int | None = None) -> int:
        return 10


@pytest.mark.parametrize(("oldest", "leased"), [(1, 10), (20, 26)])
def test_an_old_view_does_not_keep_an_engine_from_a_store_that_has_started_again(oldest: int, leased: int) -> None:
    link, graph = Link(oldest), Graph()
    links = StoreLinks("engine-0", 1, lambda node, address: link)
    links.place(SimpleNamespace(shards={"0": "store-0"}, stores={"store-0": "127.0.0.1:1"}))
    links.renew(graph)
    assert (links.last_error, graph.leased) == (None, leased)
    assert links.valid


def test_a_store_that_refuses_future_reads_too_is_not_read() -> None:
    links = StoreLinks("engine-0", 1, lambda node, address: Link(30))
    links.place(SimpleNamespace(shards={"0": "store-0"}, stores={"store-0": "127.0.0.1:1"}))
    links.renew(Graph())
    assert "cannot be read any more" in links.last_error
    assert not links.valid
