from __future__ import annotations

from penstock.log import MemoryLog, Record
from penstock.log.clock import VirtualClock
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.replication.placement_view import KEY, LOST_MS, PlacementView
from penstock.wire import Placement, encode


def test_a_bucket_that_an_engine_behind_its_time_has_opened_is_taken_back():
    """It fenced its rightful owner under a placement that was over. No newer placement follows to tell."""
    clock = VirtualClock()
    log, topics = MemoryLog(clock), ClusterTopics(TopicNames(), buckets=2)
    log.create(topics.all())

    def place(epoch, holder):
        placement = Placement(epoch, {}, {"0": holder, "1": "b"})
        log.writer().append([Record(topics.names.control, encode(placement), KEY)])

    place(3, "a")
    view = PlacementView(log, topics, clock)
    assert view.buckets_of("a") == {0}
    view.lost(0, view.epoch)
    assert view.buckets_of("a") == set()
    clock.advance(LOST_MS)
    assert view.buckets_of("a") == {0}

    view.lost(0, view.epoch)
    place(4, "b")
    assert view.buckets_of("a") == set()
    place(5, "a")
    assert view.buckets_of("a") == {0}, "a newer placement holds at once"
