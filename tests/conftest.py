"""Fixtures that several kinds of tests share."""

from support.brokers import broker, topic_prefix

__all__ = ["broker", "topic_prefix"]
