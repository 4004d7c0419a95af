"""Every transport that this machine has; the same tests run over each."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from penstock.core import _native as native
from penstock.remote import PlaneLimits, connect
from support.plane_regions import SECRET, Node, peer_tls, rdma_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from penstock.remote.tls import PeerTls

NODE = 5  # how the tests call the node


@pytest.fixture
def node(request: pytest.FixtureRequest) -> Iterator[Node]:
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="penstock-plane-", dir=memory if memory.is_dir() else None))
    yield Node(directory, tls=request.getfixturevalue("tls") if "tls" in request.fixturenames else None)
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(params=["shm", "tcp", "tls", "rdma"])
def transport(request: pytest.FixtureRequest) -> str:
    if request.param == "rdma" and not native.rdma_devices():
        pytest.skip("this machine has no RDMA device; `make test-rdma` runs these tests in a virtual machine that has")
    return request.param


@pytest.fixture
def tls(transport: str, tmp_path: Path) -> PeerTls | None:
    return peer_tls(tmp_path / "certificates") if transport == "tls" else None


@pytest.fixture
def open_plane(node: Node, transport: Any, tls: PeerTls | None) -> Callable[..., native.Plane]:
    def open_plane(secret: bytes = SECRET, limits: PlaneLimits | None = None) -> native.Plane:
        plane = connect(
            NODE,
            node.host,
            node.server.port,
            secret,
            "tcp" if transport == "tls" else transport,
            limits=limits or PlaneLimits(),
            rdma_device=rdma_device("engine"),
            tls=tls,
        )
        assert plane.transport(NODE) == ("tcp" if transport == "tls" else transport)
        return plane

    return open_plane
