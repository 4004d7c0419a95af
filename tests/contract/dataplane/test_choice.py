"""Which transport `auto` takes."""

from __future__ import annotations

import pytest

from penstock.dataplane import connect
from penstock.errors import DataPlaneError
from support.plane_regions import SECRET, Node

from .conftest import NODE


def test_a_node_of_this_machine_is_read_in_place(node: Node) -> None:
    node.add(10)
    assert connect(NODE, node.host, node.server.port, SECRET).transport(NODE) == "shm"


def test_where_its_files_cannot_be_mapped_reads_go_over_tcp(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    node.add(10)
    node.path(0).rename(node.directory / "elsewhere")
    with caplog.at_level("INFO"):
        assert connect(NODE, node.host, node.server.port, SECRET).transport(NODE) == "tcp"
    assert "not in place" in caplog.text
    with pytest.raises(DataPlaneError):
        connect(NODE, node.host, node.server.port, SECRET, "shm")


def test_a_wrong_secret_is_refused_and_not_worked_around(node: Node) -> None:
    with pytest.raises(DataPlaneError, match="another secret"):
        connect(NODE, node.host, node.server.port, b"not that secret at all")
