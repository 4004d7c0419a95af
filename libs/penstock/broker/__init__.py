"""A Kafka broker on this machine without containers: for tests, demonstrations and `penstock up`.

One KRaft node, broker and controller in one JVM, out of a locked list of jars. Not for production: one replica of
everything, and no authentication.
"""

from penstock.broker.broker import Broker
from penstock.broker.jars import kafka_jars

__all__ = ["Broker", "kafka_jars"]
