"""Checks what a process needs to serve regions over RDMA."""

from __future__ import annotations

import resource

from penstock.core import _native as native

_CAP_IPC_LOCK = 14


def missing(device: str = "") -> list[str]:
    """Return the missing requirements of RDMA, as sentences with remedies. The list is empty if RDMA can be used.

    `device`: name of the RDMA device. "" means any device. Memory that is registered with a device is locked. The limit
    on locked memory therefore applies, unless the process has the capability IPC_LOCK.
    """
    if not native.built_with_rdma():
        return ["this build has no RDMA: build the wheel where infiniband/verbs.h (libibverbs-dev) is installed"]
    wrong = []
    devices = native.rdma_devices()
    if device and device not in devices:
        wrong.append(f"there is no RDMA device {device}: found {', '.join(devices) or 'none'}")
    elif not devices:
        wrong.append("there is no RDMA device: on Kubernetes, request one from a device plugin")
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY and not _may_lock():
        wrong.append(f"at most {soft >> 10} KiB of memory can be locked: set `ulimit -l unlimited` or add IPC_LOCK")
    return wrong


def _may_lock() -> bool:
    """Return whether the process has the capability IPC_LOCK."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - no file of ours
        effective = next((line.split()[1] for line in status if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _CAP_IPC_LOCK & 1)
