"""The driver of the stream adaptor, with a stand-in for Spark."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from penstock.log import MemoryLog, Topic
from penstock.log.topics import TopicNames
from penstock.spark import stream_adaptor
from penstock.spark.stream_adaptor import StreamAdaptor, StreamSettings
from penstock.wire import StreamDeclaration

NAMES = TopicNames()
STREAM = StreamDeclaration(1, "http://x/s", "s", 100, 0, False, (), 0, 10_000, 86_400_000, None, None, None, 0)


@pytest.fixture
def adaptor(monkeypatch):
    log = MemoryLog()
    log.create([Topic(NAMES.control), Topic(NAMES.events("s"), 3), Topic(NAMES.tuples("s"), 1)])
    monkeypatch.setattr(stream_adaptor, "HadoopFiles", MagicMock())
    monkeypatch.setattr(StreamAdaptor, "_counts", staticmethod(list))
    made = StreamAdaptor(MagicMock(), log, NAMES, StreamSettings("b:1", ("d",), "/c", "g"))
    monkeypatch.setattr(made._declared, "by_topic", lambda: {NAMES.events("s"): STREAM})
    return made


def test_partitions_that_events_have_gained_are_made_for_tuples(adaptor):
    adaptor._by_topic, adaptor._versions = {NAMES.events("s"): STREAM}, [0]
    adaptor._start()
    assert adaptor._log.topics()[NAMES.tuples("s")] == 3


def test_a_query_that_was_stopped_begins_again(adaptor, monkeypatch):
    query = MagicMock(recentProgress=[], isActive=False)
    monkeypatch.setattr(adaptor, "_start", lambda: query)
    assert not adaptor.step()
    assert adaptor._query is None
    assert not adaptor.step()
