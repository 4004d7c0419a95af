"""Which transport `auto` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.errors import DataPlaneError
from penstock.remote import Server, connect
from support.plane_regions import SECRET, Node

from .conftest import NODE

if TYPE_CHECKING:
    from pathlib import Path


def test_a_node_of_this_machine_is_read_in_place(node: Node) -> None:
    node.add(10)
    assert connect(NODE, node.host, node.server.port, SECRET).transport(NODE) == "shm"


def test_where_its_files_cannot_be_mapped_reads_go_over_tcp(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    node = Node(tmp_path, transport="tcp")
    node.add(10)
    node.path(0).rename(node.directory / "other-host")
    with caplog.at_level("INFO"):
        assert connect(NODE, node.host, node.server.port, SECRET).transport(NODE) == "tcp"
    assert "not in place" in caplog.text
    with pytest.raises(DataPlaneError):
        connect(NODE, node.host, node.server.port, SECRET, "shm")


def test_without_a_device_rdma_falls_back_to_tcp_and_says_why(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.add(10)
    plane = connect(NODE, node.host, node.server.port, SECRET, "rdma", rdma_device="no such device")
    assert plane.transport(NODE) == "tcp"
    assert "reads go over TCP: no RDMA: " in caplog.text


def test_a_node_without_a_device_serves_over_tcp_and_says_why(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    server = Server("127.0.0.1", 0, SECRET, transport="rdma", rdma_device="no such device")
    assert "others read this node over TCP: no RDMA: " in caplog.text
    assert connect(NODE, "127.0.0.1", server.port, SECRET, "tcp").transport(NODE) == "tcp"


def test_a_wrong_secret_is_refused_and_not_worked_around(node: Node) -> None:
    with pytest.raises(DataPlaneError, match="another secret"):
        connect(NODE, node.host, node.server.port, b"not that secret at all")
