"""Fixtures that several kinds of tests share."""

from hypothesis import settings

from support.brokers import broker, topic_prefix

__all__ = ["broker", "topic_prefix"]

settings.register_profile("penstock", deadline=None)  # a busy machine is no fault of the code under test
settings.load_profile("penstock")
