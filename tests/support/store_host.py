"""Forks stores for tests: `python -m support.store_host`. To start a store then costs a fork, but no imports.

Each line of JSON on stdin (directory, shards, own, host, port) starts a store; the answer is a line with its process id
and its port. The stores end with the host, and the host ends when its stdin is closed. Each store has the shards,
leases and servers of the store service. It does not read the log: the same data come over the control connection, as
numbered steps.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.intake.declaration import Declaration
from penstock.errors import DataError
from penstock.private_files import make_directory
from penstock.remote import Server
from penstock.replication.absorption import Absorption
from penstock.services.store.leases import Leases, LeaseServer
from penstock.services.store.shard_set import ShardSet
from penstock.services.store.shard_store import ShardStore

if TYPE_CHECKING:
    from penstock.remote.control_connection import Columns

SECRET = b"the secret of the tests' stores"
RDMA_DEVICES = os.environ.get("PENSTOCK_RDMA_DEVICES", ",").split(
    ","
)  # of stores and of engines; empty: the first device


class FedStore(LeaseServer):
    """A store whose steps come from the testing process, in order, over one control connection."""

    graph: ShardSet
    step = 0
    stepping = threading.Lock()  # an abandoned connection may still be applying a step

    def _do(self, message: dict[str, Any], columns: Columns) -> dict[str, Any]:
        match message["do"]:
            case "hello":
                return {**super()._do(message, columns), "step": self.step}
            case "step":
                with self.stepping:
                    if message["number"] > self.step:
                        raise DataError(f"step {message['number']} does not follow {self.step}")
                    if message["number"] == self.step:  # otherwise the step is applied already
                        self._apply(message, columns)
                        self.step += 1
                return {"step": self.step}
            case _:
                return super()._do(message, columns)

    def _apply(self, message: dict[str, Any], columns: Columns) -> None:
        match message["kind"]:
            case "labels":
                for shard in self.graph.shards.values():
                    shard.store.number_labels(columns["graphs"], columns["predicates"])
            case "declare":
                timing = None if message["timing"] is None else tuple(message["timing"])
                declaration = Declaration.from_json(message["declaration"])
                self.graph.streams.add(declaration, message["stream"], Absorption(timing, message["graph"]))
            case "insert":
                self.graph.insert(columns["s"], columns["p"], columns["o"], columns["g"], 0, 0)
            case "change":
                removed, added = (tuple(columns[name + kind] for name in "spog") for kind in "-+")
                self.graph.change(removed, added, 0, 0)  # type: ignore[arg-type]
            case "batch":
                stream = self.graph.streams.get(message["iri"])
                stream.append(columns["ts"], columns["s"], columns["p"], columns["o"])
                stream.move(message["end_ms"])
                self.graph.moved(message["iri"])
        bounds = {int(stream): int(batch) for stream, batch in message["released"]}
        for shard in self.graph.shards.values():
            shard.release(bounds)


def start_store(
    directory: Path, shards: int, own: list[int], *, host: str = "127.0.0.1", port: int = 0, rdma_device: str = ""
) -> FedStore:
    """Make a store in this process. Its data plane answers at once, its control server only while it runs."""
    make_directory(directory)
    data = Server(host, 0, SECRET, rdma_device=rdma_device)
    leases, graph = Leases(), ShardSet()
    for number in own:
        taken = len(list(directory.glob(f"{number}-*")))
        graph.shards[number] = ShardStore(number, shards, directory / f"{number}-{taken}", data)
        leases.add(graph.shards[number])
    server = FedStore(leases, host, port, SECRET, data.port)
    server.graph = graph
    return server


def _end_with(life: int) -> None:
    os.read(life, 1)
    os._exit(1)


def _be_store(line: str, life: int, answer: int) -> None:
    """Run a store until SIGTERM, or until the host closes the other end of the pipe `life`."""
    asked = json.loads(line)
    where = Path(asked.pop("directory")), asked.pop("shards"), asked.pop("own")
    server = start_store(*where, rdma_device=RDMA_DEVICES[0], **asked)
    signal.signal(signal.SIGTERM, lambda *_: server.close())
    threading.Thread(target=_end_with, args=(life,), daemon=True).start()
    os.write(answer, json.dumps({"pid": os.getpid(), "port": server.address.port}).encode() + b"\n")
    os.close(answer)
    server.run()


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the stores
    life, alive = os.pipe()
    answer = os.dup(sys.stdout.fileno())
    for line in iter(sys.stdin.readline, ""):
        if os.fork() == 0:
            os.close(alive)
            status = 0
            try:
                _be_store(line, life, answer)
            except BaseException:  # noqa: BLE001 - the test sees that no answer comes; why stands on stderr
                traceback.print_exc()
                status = 1
                os.write(answer, b"{}\n")
            os._exit(status)


if __name__ == "__main__":
    main()
