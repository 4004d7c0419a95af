"""Opens Spark sessions, by default on all local cores.

Tested together: pyspark 4.2.0 and 4.2.1, pandas 2.3, pyarrow 26, Java 17, the Kafka connector of jars.lock, broker
4.4.0.
"""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.broker.jars import fetched, locked
from penstock.errors import StorageError
from penstock.spark.java_home import java_home

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

DRIVER_MEMORY = "2g"

_LOCAL = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
}
_QUICKLY_COMPILED = "-XX:TieredStopAtLevel=1"
_ALWAYS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Tasks write rows of several kinds, each kind to its own file, in arrival order: unsorted.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    # Partitions are sized by their known content; Spark must not merge them.
    "spark.sql.adaptive.enabled": "false",
    # For shuffles without a known size: sums of a few rows per task. Spark's default would run 200 tasks for four rows.
    "spark.sql.shuffle.partitions": "4",
}


def open_session(
    name: str = "penstock",
    master: str | None = None,
    driver_memory: str = DRIVER_MEMORY,
    settings: Mapping[str, str] | None = None,
    *,
    kafka: bool = False,
    short: bool = False,
) -> SparkSession:
    """Return a session. The caller must stop the session.

    `master`: the Spark master. None: `local[*]`. `spark-submit` overrides master and memory. `kafka`: whether the
    session gets Spark's Kafka connector. `short`: whether the work takes about a minute. The JVM then compiles fast
    instead of optimising (ADR 30). StorageError if pyspark, Java or the connector is missing.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra; the rest of Penstock needs no Spark
    except ImportError:
        raise StorageError("Spark is not installed: install the extra, `pip install 'penstock[spark]'`") from None
    builder = SparkSession.builder.appName(name)
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # spark-submit sets it
        _prepare_environment()
        for key, value in _LOCAL.items():
            builder = builder.config(key, value)
        logging = files("penstock.spark").joinpath("log4j2.properties")
        options = f"-Dlog4j2.configurationFile={logging}" + (f" {_QUICKLY_COMPILED}" if short else "")
        builder = builder.config("spark.driver.extraJavaOptions", options)
        builder = builder.master(master or "local[*]").config("spark.driver.memory", driver_memory)
    if kafka:
        builder = builder.config("spark.jars", ",".join(str(jar) for jar in connector_jars()))
    for key, value in {**_ALWAYS, **(settings or {})}.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def connector_jars() -> list[Path]:
    """Return Spark's Kafka connector and its dependencies from the locked list. Maven downloads missing jars.

    If PENSTOCK_SPARK_KAFKA_JARS names an existing directory, the jars in this directory are used unchanged.
    StorageError if the jars are unavailable. The jar of the token provider is older, because its version 4.2.0 is not
    published. Only delegation tokens use this jar.
    """
    given = os.environ.get("PENSTOCK_SPARK_KAFKA_JARS")
    if given:
        return sorted(Path(given).glob("*.jar"))
    jars = locked("penstock.spark")
    connector = next(jar.version for jar in jars if jar.artifact.startswith("spark-sql-kafka"))
    directory = fetched(jars, f"spark-kafka-{connector}")
    return [directory / jar.file_name for jar in jars]


def _prepare_environment() -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    home = java_home(Path(tempfile.gettempdir()))
    if home is not None:
        os.environ["JAVA_HOME"] = str(home)
