"""What a store says where RDMA is required and cannot be used."""

from __future__ import annotations

import resource

import pytest

from penstock.core import _native as native
from penstock.remote import rdma_requirements


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch):
    def made(*devices: str, built: bool = True, memlock: int = resource.RLIM_INFINITY) -> None:
        monkeypatch.setattr(native, "built_with_rdma", lambda: built)
        monkeypatch.setattr(native, "rdma_devices", lambda: list(devices))
        monkeypatch.setattr(resource, "getrlimit", lambda _: (memlock, memlock))
        monkeypatch.setattr(rdma_requirements, "_may_lock", lambda: False)

    return made


def test_a_machine_with_a_device_and_unlimited_locked_memory_lacks_nothing(machine):
    machine("mlx5_0")
    assert rdma_requirements.missing() == []
    assert rdma_requirements.missing("mlx5_0") == []


def test_each_missing_part_is_named_with_its_remedy(machine):
    machine(memlock=8 << 20)
    device, memory = rdma_requirements.missing()
    assert "device plugin" in device
    assert "8192 KiB" in memory
    assert "ulimit -l unlimited" in memory
    machine("mlx5_0")
    assert rdma_requirements.missing("mlx5_9") == ["there is no RDMA device mlx5_9: found mlx5_0"]
    machine(built=False)
    [build] = rdma_requirements.missing()
    assert "libibverbs-dev" in build


def test_the_capability_of_this_process_can_be_read():
    assert rdma_requirements._may_lock() in (True, False)
