"""Two coordinators on one log: the standby knows where the active one is."""

from __future__ import annotations

from penstock.services.coordinator.coordinator import Coordinator
from support.small_cluster import SmallCluster


def test_a_standby_knows_the_address_of_the_active_coordinator():
    cluster = SmallCluster()
    other = Coordinator(cluster.log, cluster.topics, "c2", cluster.terms, cluster.clock)
    pair = {"http://c": cluster.coordinator, "http://c2": other}
    for url, coordinator in pair.items():
        coordinator.answer_at(url)
    for _ in range(40):
        cluster.clock.advance(200)
        for coordinator in pair.values():
            coordinator.step()
    [active] = [url for url, coordinator in pair.items() if coordinator.active]
    assert {url: c.other_active for url, c in pair.items()} == {url: None if url == active else active for url in pair}
    pair[active].close()
    [survivor] = [coordinator for url, coordinator in pair.items() if url != active]
    for _ in range(40):
        cluster.clock.advance(200)
        survivor.step()
    assert (survivor.active, survivor.other_active) == (True, None)
    survivor.close()
