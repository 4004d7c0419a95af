"""A standalone worker of Kafka Connect with a file sink, as a process. Its jars, with the Avro converter of Apicurio, are
in `jars.lock`: Kafka 4.3.1, Apicurio Registry 2.6.13.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from penstock.broker.jars import fetched, locked
from penstock.broker.java import find_java
from penstock.broker.ports import free_port
from penstock.broker.processes import dies_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from typing import Self

_STOP_S = 30.0


class FileSink:
    """A worker that appends the values of records to `path`. `registry`: the URL of Apicurio's API, version 2."""

    def __init__(self, folder: Path, servers: str, topics: Sequence[str], registry: str) -> None:
        self.path, self.log_path = folder / "sink.txt", folder / "connect.log"
        self._folder = folder
        self._worker = {
            "bootstrap.servers": servers,
            "listeners": f"http://127.0.0.1:{free_port()}",
            "offset.storage.file.filename": folder / "offsets",
            "offset.flush.interval.ms": 500,
            "consumer.isolation.level": "read_committed",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
            "value.converter.apicurio.registry.url": registry,
            "value.converter.apicurio.registry.as-confluent": "true",
            "value.converter.apicurio.registry.use-id": "contentId",
        }
        self._connector = {
            "name": "sink",
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "tasks.max": 1,
            "topics": ",".join(topics),
            "file": self.path,
            "transforms": "time",  # a Struct prints a timestamp without its milliseconds
            "transforms.time.type": "org.apache.kafka.connect.transforms.TimestampConverter$Value",
            "transforms.time.field": "_time",
            "transforms.time.target.type": "unix",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        files = []
        for name, settings in (("worker", self._worker), ("connector", self._connector)):
            files.append(self._folder / f"{name}.properties")
            files[-1].write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        jars = fetched(locked("support.connect"), "kafka-connect-4.3.1")
        command = [*dies_with_parent(), find_java(), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
        command += ["org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files)]
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        return self

    def lines(self) -> list[str]:
        """Return the values in the file so far. AssertionError if the worker has ended."""
        assert self._process is not None
        assert self._process.poll() is None, self.log_path.read_text()[-4_000:]
        return self.path.read_text().splitlines() if self.path.exists() else []

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(_STOP_S)
