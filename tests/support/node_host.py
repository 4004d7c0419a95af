"""Forks store nodes for tests: `python -m support.node_host`, so that a node costs a fork and no imports.

A line of JSON on stdin (directory, shards, own, host, port) is a node to start; the answer is a line with its process
id and its port. The nodes go when the host does, and the host goes when its stdin is closed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path

from penstock.remote.control_server import start_node

SECRET = b"the secret of the tests' nodes"
RDMA_DEVICES = os.environ.get("PENSTOCK_RDMA_DEVICES", ",").split(",")  # of nodes, of engines; empty: the first


def _end_with(life: int) -> None:
    os.read(life, 1)
    os._exit(1)


def _be_node(line: str, life: int, answer: int) -> None:
    """Run a node until SIGTERM, or until `life`, which the host holds the other end of, is closed."""
    asked = json.loads(line)
    kept = Path(asked.pop("checkpoints")) if "checkpoints" in asked else None
    where = Path(asked.pop("directory")), asked.pop("shards"), asked.pop("own")
    server = start_node(*where, SECRET, rdma_device=RDMA_DEVICES[0], checkpoints=kept, **asked)
    signal.signal(signal.SIGTERM, lambda *_: server.close())
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    os.write(answer, json.dumps({"pid": os.getpid(), "port": server.address.port}).encode() + b"\n")
    os.close(answer)
    server.run()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the nodes' ends
    life, alive = os.pipe()
    answer = os.dup(sys.stdout.fileno())
    for line in iter(sys.stdin.readline, ""):
        if os.fork() == 0:
            os.close(alive)
            status = 0
            try:
                _be_node(line, life, answer)
            except BaseException:  # noqa: BLE001 - the test sees that no answer comes; why stands on stderr
                traceback.print_exc()
                status = 1
                os.write(answer, b"{}\n")
            os._exit(status)


if __name__ == "__main__":
    main()
