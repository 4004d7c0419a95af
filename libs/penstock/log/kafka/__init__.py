"""The log on Kafka, by confluent-kafka. Imported separately, because it needs the `cluster` extra."""

from penstock.log.kafka.kafka_log import KafkaLog

__all__ = ["KafkaLog"]
