"""The log on Kafka, by confluent-kafka. The package is imported separately, because it needs the `cluster` extra."""

from penstock.log.kafka.kafka_log import KafkaLog

__all__ = ["KafkaLog"]
