"""A local Kafka broker without containers, for tests, demonstrations and `penstock up`.

It is a single KRaft node, with broker and controller in one JVM. Its jars come from a locked list. It is not for
production: topics have one replica, and clients are not authenticated.
"""

from penstock.broker.broker import Broker
from penstock.broker.jars import kafka_jars

__all__ = ["Broker", "kafka_jars"]
