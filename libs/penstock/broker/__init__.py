"""A local Kafka broker without containers, for tests, demonstrations and `penstock up`.

The broker is a single KRaft node, with broker and controller in one JVM. A locked list determines its jars. The broker
is not for production, because topics have one replica and clients are not authenticated.
"""

from penstock.broker.broker import Broker
from penstock.broker.jars import kafka_jars

__all__ = ["Broker", "kafka_jars"]
