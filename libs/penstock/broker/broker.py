"""A broker process. Before the first start, the storage is formatted. The process can be stopped or killed, and
restarted on the same data.
"""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Self

from penstock.broker.jars import kafka_jars
from penstock.broker.java import find_java
from penstock.broker.ports import free_port
from penstock.broker.processes import dies_with_parent
from penstock.errors import StorageError
from penstock.private_files import make_directory, opened

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_READY_S = 60.0
_STOP_S = 30.0
_TRY_S = 0.05

_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=PLAINTEXT://127.0.0.1:{port}{more},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}{more}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
controller.listener.names=CONTROLLER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
message.max.bytes=67108864
replica.fetch.max.bytes=67108864
log.cleaner.dedupe.buffer.size=16777216
num.network.threads=2
num.io.threads=4
"""
_JVM = ("-Xms128m", "-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class Broker:
    """A KRaft broker with its data in `directory`. Callers use it as a context manager, or call `start` and `stop`.

    `port` 0 selects a free port, which stays the same across restarts. `listeners`: additional ports by protocol (such
    as "SASL_SSL"). `properties`: additional broker properties.
    """

    def __init__(
        self,
        directory: Path,
        port: int = 0,
        jvm: tuple[str, ...] = _JVM,
        listeners: Mapping[str, int] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = directory
        self._jvm = jvm
        self._more = "".join(f",{protocol}://127.0.0.1:{its}" for protocol, its in (listeners or {}).items())
        self._properties = "".join(f"{name}={value}\n" for name, value in (properties or {}).items())
        self.port = port or free_port()
        self._controller_port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        """Bootstrap servers for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def log_path(self) -> Path:
        """Path of the broker's log file."""
        return self._directory / "broker.log"

    @property
    def pid(self) -> int | None:
        """The process id. None before `start`, and after `stop` or `kill`."""
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start the broker and wait until it is ready. StorageError if the broker cannot be started. If the broker does
        not respond, the error contains the end of the broker's log.
        """
        assert self._process is None, "the broker is already running"
        properties = self._write_properties()
        if not (self._data / "meta.properties").exists():
            self._format(properties)
        command = [*dies_with_parent(), *self._java(), "kafka.Kafka", str(properties)]
        with opened(self.log_path, "ab") as log:  # a separate session: Ctrl-C in a terminal reaches only the parent
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._wait_until_ready()
        return self

    def _java(self) -> list[str]:
        logging = "-Dlog4j2.disable.jmx=true"
        return [find_java(), *self._jvm, logging, "-cp", f"{kafka_jars()}/*"]

    @property
    def _data(self) -> Path:
        return self._directory / "data"

    def _write_properties(self) -> Path:
        """Write the configuration. The configuration is written at each start, because the ports can differ from the
        ports of the previous start.
        """
        make_directory(self._directory)
        settings = {
            "port": self.port,
            "controller_port": self._controller_port,
            "more": self._more,
            "data": self._data,
        }
        path = self._directory / "broker.properties"
        path.write_text(_PROPERTIES.format(**settings) + self._properties)
        return path

    def _format(self, properties: Path) -> None:
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        command = [*self._java(), "kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_READY_S, check=False)
        if done.returncode != 0:
            raise StorageError(f"Kafka's storage could not be formatted: {(done.stdout + done.stderr).strip()}")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        while not _answers(self.port):
            assert self._process is not None
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                end = self.log_path.read_text(errors="replace")[-2000:]
                raise StorageError(f"the broker does not respond on port {self.port}; end of its log: {end}")
            time.sleep(_TRY_S)

    def stop(self) -> None:
        """Shut the broker down cleanly. Kill the process if it does not end within `_STOP_S` seconds."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """Kill the process at once (SIGKILL), without an orderly shutdown."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def _answers(port: int) -> bool:
    """Return whether the port accepts connections. The broker opens the port last, after it has loaded its metadata."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
