"""The process of the adaptor on Spark: the driver of the streaming query."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.acls import Principal
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import topics_of
from penstock.services.adaptor.java_kafka import java_properties
from penstock.services.adaptor.service import AdaptorSettings, gauges
from penstock.spark.session import open_session
from penstock.spark.stream_adaptor import StreamAdaptor, StreamSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA_KAFKA = "PENSTOCK_SPARK_KAFKA_"


class SparkAdaptorSettings(AdaptorSettings):
    """Settings of an adaptor on Spark."""

    poll_ms: int = Field(200, ge=1, le=10_000, description="interval at which the driver checks the streaming query")
    checkpoint: str = Field(
        min_length=1,
        description="folder of the streaming query's checkpoints, on any Hadoop file system; not shared by adaptors",
    )
    checkpoint_ms: int = Field(
        1_000, ge=0, description="interval at which offsets are written to the checkpoint; 0 = in every micro-batch"
    )
    trigger_ms: int = Field(
        0, ge=0, description="trigger interval of micro-batches; 0 = start the next one when events arrive"
    )
    max_events: int = Field(200_000, ge=1, description="maximum number of events of one micro-batch")
    spark_master: str | None = Field(None, description="Spark master; none = `local[*]`. `spark-submit` sets its own")
    spark_memory: str = Field("1g", description="memory of the Spark driver. `spark-submit` sets its own")


class SparkAdaptor:
    """A stream adaptor with its own Spark session."""

    def __init__(self, context: Context[SparkAdaptorSettings]) -> None:
        settings = context.settings
        topics_of(context, Principal.spark_adaptor)
        self._spark: SparkSession = open_session(
            "penstock adaptor", settings.spark_master, settings.spark_memory, kafka=True
        )
        context.stopping.listen()  # pyspark has replaced the SIGINT handler
        given = StreamSettings(
            bootstrap_servers=settings.bootstrap_servers,
            dictionaries=settings.locations(),
            checkpoint=settings.checkpoint,
            group=settings.group,
            trigger_ms=settings.trigger_ms,
            max_events=settings.max_events,
            checkpoint_ms=settings.checkpoint_ms,
            give_up_s=settings.give_up_s,
            kafka=java_properties(settings.kafka_properties()) | java_kafka_properties(),
            certificates=settings.peer_certificates(serves=False),
            registry=settings.registry_access(),
        )
        self._adaptor = StreamAdaptor(self._spark, context.log, context.names, given)
        context.observers.append(gauges(self._adaptor, self._adaptor.lag, context.metrics))

    def step(self, timeout_s: float) -> bool:
        """Monitor the streaming query for `timeout_s` seconds. Returns whether the streaming query finished a batch.
        Errors: see `StreamAdaptor.step`.
        """
        return self._adaptor.step(timeout_s)

    def close(self) -> None:
        """Stop the streaming query and the Spark session."""
        self._adaptor.close()
        self._spark.stop()


def java_kafka_properties() -> dict[str, str]:
    """Return the properties of Kafka's Java clients, from PENSTOCK_SPARK_KAFKA_*. These properties differ from the
    properties of librdkafka.
    """
    return {
        name.removeprefix(_JAVA_KAFKA).lower().replace("_", "."): value
        for name, value in os.environ.items()
        if name.startswith(_JAVA_KAFKA) and name != f"{_JAVA_KAFKA}JARS"
    }


def main() -> int:
    """Run the service."""
    return run("adaptor", SparkAdaptorSettings, SparkAdaptor)


if __name__ == "__main__":
    sys.exit(main())
