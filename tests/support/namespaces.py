"""Network namespaces: one for an engine and one for each node, with a link between the engine and each node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Network:
    """Names of namespaces; the address of node n is hosts[n]."""

    engine: str
    nodes: list[str]
    hosts: list[str]


@contextmanager
def network(nodes: int) -> Iterator[Network]:
    """Yield namespaces, which exist while the context lasts. The test is skipped if this machine or user cannot make
    them.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and iproute2")
    made = Network(
        f"penstock-engine-{os.getpid()}",
        [f"penstock-node-{os.getpid()}-{n}" for n in range(nodes)],
        [f"10.78.{n}.1" for n in range(nodes)],
    )
    try:
        _ip("netns", "add", made.engine)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        for number in range(nodes):
            _link(made, number)
        yield made
    finally:
        for name in (made.engine, *made.nodes):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _link(made: Network, number: int) -> None:
    node, ends = made.nodes[number], (f"node{number}", f"engine{number}")
    _ip("netns", "add", node)
    _ip("link", "add", ends[0], "netns", node, "type", "veth", "peer", "name", ends[1], "netns", made.engine)
    for name, device, host in ((node, ends[0], 1), (made.engine, ends[1], 2)):
        _ip("-n", name, "address", "add", f"10.78.{number}.{host}/24", "dev", device)
        _ip("-n", name, "link", "set", device, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def start(namespace: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start this Python with these arguments in a namespace. Its stdin and stdout are pipes of text."""
    command = ["ip", "netns", "exec", namespace, sys.executable, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, **options
    )
