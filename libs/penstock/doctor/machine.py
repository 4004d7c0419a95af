"""Checks of the machine: packages, clock, open files, shared memory, RDMA, ports, data directory."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from penstock.broker.ports import is_free
from penstock.doctor.findings import failure, ok, skipped, warning
from penstock.remote.rdma_requirements import missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.doctor.findings import Finding

LEAST_FILES: Final = 4_096
"""Recommended limit of open files. The connections of many clients, and region files, can exceed a lower limit."""
LEAST_SHARED_BYTES: Final = 256 << 20
"""Recommended free shared memory in bytes. With less free memory, the shards of a store cannot grow."""
_LEAST_DISK_SHARE: Final = 0.05
_PACKAGES: Final = ("confluent-kafka", "pydantic-settings", "structlog", "pyarrow", "uvicorn", "starlette")
_TIME_ERROR: Final = 5  # of ntp_adjtime: the kernel's clock is not synchronized
_TIMEX_BYTES: Final = 512


def packages() -> Iterator[Finding]:
    """Report the version of Python. Check that all packages that services need are installed."""
    yield ok("python", f"Python {sys.version.split()[0]}")
    absent = []
    for name in _PACKAGES:
        try:
            version(name)
        except PackageNotFoundError:
            absent.append(name)
    if absent:
        yield failure("packages", f"{', '.join(absent)} not installed", "pip install 'penstock[cluster]'")
    else:
        yield ok("packages", ", ".join(f"{name} {version(name)}" for name in _PACKAGES))


def clock() -> Iterator[Finding]:
    """Check that the kernel's clock is synchronized."""
    try:
        state = ctypes.CDLL(None, use_errno=True).ntp_adjtime(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        state = -1
    if state < 0:
        yield skipped("clock", "the state of the clock cannot be read here")
    elif state == _TIME_ERROR:
        yield warning(
            "clock",
            "the clock of this machine is not synchronized",
            "run chrony or systemd-timesyncd: idle streams and heartbeats follow the wall clock",
        )
    else:
        yield ok("clock", "synchronized")


def open_files() -> Iterator[Finding]:
    """Check the limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < LEAST_FILES:
        yield warning("open files", f"at most {soft} open files", f"ulimit -n {LEAST_FILES} or more")
    else:
        yield ok("open files", f"at most {soft}")


def shared_memory(folder: Path) -> Iterator[Finding]:
    """Check that the shared-memory file system has space for the regions of shards."""
    try:
        space = os.statvfs(folder)
    except OSError as error:
        yield failure(
            "shared memory", f"{folder}: {error.strerror}", "mount a tmpfs there, or set PENSTOCK_REGIONS_DIR"
        )
        return
    free, size = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    text = f"{free >> 20} of {size >> 20} MiB free in {folder}"
    if free < LEAST_SHARED_BYTES:
        yield failure(
            "shared memory",
            text,
            f"remove regions of ended stores, or enlarge it (mount -o remount,size=2G {folder};"
            " store.sharedMemory of the chart, shm_size of a container)",
        )
    else:
        yield ok("shared memory", text)


def rdma(device: str, *, required: bool) -> Iterator[Finding]:
    """Check whether this machine can serve regions over RDMA. If it cannot, services use TCP, unless RDMA is
    `required`.
    """
    wrong = missing(device)
    if not wrong:
        yield ok("rdma", "a device can be used")
    elif required:
        for text in wrong:
            what, _, remedy = text.partition(": ")
            yield failure("rdma", what, remedy)
    else:
        yield skipped("rdma", "; ".join(text.partition(": ")[0] for text in wrong) + " (not required)")


def ports(listening: dict[str, tuple[str, int]]) -> Iterator[Finding]:
    """Check that the ports of a service are free. `listening`: the host and the port, by the name of the setting."""
    for setting, (host, number) in listening.items():
        if not number:
            continue
        if is_free(number):
            yield ok("port", f"{host}:{number} is free ({setting})")
        else:
            yield warning(
                "port",
                f"port {number} is in use ({setting})",
                "fine if the service runs already; otherwise stop the other process or choose another port",
            )


def disk(folder: Path) -> Iterator[Finding]:
    """Check that a data directory can be written and is private, and that its file system has free space."""
    if not folder.is_dir():
        yield warning("data directory", f"{folder} does not exist", "the service creates it at its first start")
        return
    if not os.access(folder, os.W_OK | os.X_OK):
        yield failure("data directory", f"{folder} cannot be written", f"chown it to the user {os.geteuid()}")
        return
    mode = folder.stat().st_mode & 0o777
    if mode & 0o077:
        yield warning("data directory", f"{folder} has mode {mode:04o}", f"chmod 700 {folder}")
    space = os.statvfs(folder)
    free, size = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    text = f"{free >> 30} of {size >> 30} GiB free in {folder}"
    if size and free < size * _LEAST_DISK_SHARE:
        yield failure("data directory", text, "free space: a checkpoint that cannot be written is retried for ever")
    else:
        yield ok("data directory", text)
