"""What a cluster and a `penstock serve` take while their doors are under attack: memory, ports, restarts."""

from __future__ import annotations

import http.client
import re
import socket
import subprocess
import sys
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from penstock.rdf.parse_limits import PARSE_LIMITS
from penstock.rdf.parser_process import PARSERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.cli.up import LocalCluster

MEMORY_LIMIT = 8 * (64 << 20)
"""What events and requests on their way may take beside twice the idle memory."""
STARTS = 3


def listening(pids: list[int]) -> list[int]:
    """Ports that processes listen on."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", str(entry.readlink())))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(each[1].partition(":")[2], 16) for each in lines if each[3] == "0A" and each[9] in inodes]


def tree(pid: int) -> list[int]:
    """A process and its children."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(each for child in children for each in tree(int(child)))]
    return []


def _status(pid: int, name: str) -> int:
    """Bytes that the kernel counts for a process; 0 where it has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return 0


def held(pid: int) -> int:
    """Memory that a process holds, shared memory that it has touched included."""
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    """The most that a process has held since `forget_peak`."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


class Served:
    """A `penstock serve` with a stream whose events are good, and their answers."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "penstock", "serve", "--data-dir", str(folder), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1].rstrip("/")
        self.now = 0
        self.ask("PUT", "/streams/good", b'{"timing": "all", "batch_ms": 1000, "idle_timeout_ms": 3600000}')
        text = "SELECT (COUNT(*) AS ?n) FROM STREAM <good:s> [RANGE 1s STEP 1s] WHERE { ?s <good:p> ?o }"
        self.ask(
            "PUT",
            f"/streams/{quote('good:s', safe='')}",
            b'{"timing": "all", "batch_ms": 1000, "idle_timeout_ms": 3600000}',
        )
        assert self.ask("PUT", "/queries/good", text.encode())[0] < 300

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=120)
        connection.request(method, path, body)
        answer = connection.getresponse()
        found = answer.status, answer.read()
        connection.close()
        return found

    def push(self) -> None:
        self.now += 1000
        path = f"/streams/{quote('good:s', safe='')}"
        status, text = self.ask("POST", f"{path}/events?timestamp={self.now}", b"<good:a> <good:p> <good:b> .")
        assert status < 300, text
        status, text = self.ask("POST", f"{path}/advance?timestamp={self.now}")
        assert status < 300, text

    def answered(self) -> bool:
        """Whether every instant of the last 50 is there once, with one row."""
        place = urlsplit(self.url)
        with socket.create_connection((place.hostname or "", place.port or 0), timeout=5) as connection:
            connection.sendall(
                f"GET /queries/good/results?after={self.now - 50_000} HTTP/1.1\r\nhost: 127.0.0.1:{place.port}\r\n\r\n".encode()
            )
            found, deadline = b"", time.monotonic() + 30
            while f"id: {self.now}\n".encode() not in found.replace(b"\r", b"") and time.monotonic() < deadline:
                with suppress(TimeoutError):
                    found += connection.recv(1 << 16)
        times = [int(each) for each in re.findall(rb"id: (\d+)", found)]
        return times == list(range(max(1000, self.now - 49_000), self.now + 1, 1000))

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(120)


class Watch:
    """Memory of each process: idle, and at most; shared regions; parser processes; restarts."""

    def __init__(self, cluster: LocalCluster, served: Served) -> None:
        self._cluster, self._served = cluster, served
        self._ports: dict[str, tuple[int, int]] = {}
        for pid in self.pids().values():
            forget_peak(pid)
        self.idle = {name: held(pid) for name, pid in self.pids().items()} | {"regions": self._regions()}
        self.peak: dict[str, int] = defaultdict(int, self.idle)
        self.parsers: dict[str, int] = defaultdict(int)

    def pids(self) -> dict[str, int]:
        found = {name: s.process.pid for name, s in self._cluster.services.items() if s.process is not None}
        return found | {"serve": self._served.process.pid}

    def _regions(self) -> int:
        """Bytes of the stores' regions in shared memory."""
        folder = self._cluster.services["store-0"].settings["PENSTOCK_REGIONS_DIR"]
        found = 0
        for path in Path(folder).rglob("*"):
            with suppress(OSError):
                found += path.stat().st_blocks * 512
        return found

    def look(self) -> None:
        """Look at everything, and start what has ended."""
        for name, pid in self.pids().items():
            self.peak[name] = max(peak(pid), self.peak[name])
            children = sum(peak(child) for child in tree(pid)[1:])
            self.parsers[name] = max(children, self.parsers[name])
        self.peak["regions"] = max(self._regions(), self.peak["regions"])
        self._cluster.watch()

    def beyond(self) -> dict[str, str]:
        """What has grown too much, or ends again and again."""
        grown = {
            name: f"{self.peak[name] >> 20} MiB, idle {idle >> 20}"
            for name, idle in self.idle.items()
            if self.peak[name] > 2 * idle + MEMORY_LIMIT
        }
        bound = PARSERS * (PARSE_LIMITS.parser_memory_mb << 20)
        parsers = {f"parsers of {n}": f"{size >> 20} MiB" for n, size in self.parsers.items() if size > bound}
        ended = {n: f"{s.starts} starts" for n, s in self._cluster.services.items() if s.starts > STARTS}
        if self._served.process.poll() is not None:
            ended["serve"] = f"exit code {self._served.process.returncode}"
        return grown | parsers | ended

    # ---- doors
    def http_port(self, name: str) -> int:
        """The port of a service's HTTP, as its log says."""
        service = self._cluster.services[name]
        starts, port = self._ports.get(name, (0, 0))
        if starts != service.starts:
            records = self._cluster.supervisor.records(service)
            port = next((record["http_port"] for record in records if record.get("event") == "started"), 1)
            if port != 1:
                self._ports[name] = service.starts, port
        return port

    def http_ports(self) -> list[int]:
        return [self.http_port(name) for name in self._cluster.services] + [urlsplit(self._served.url).port or 1]

    def said(self) -> Iterator[str]:
        """The figures, a line each."""
        starts = {name: service.starts for name, service in self._cluster.services.items()}
        for name, idle in self.idle.items():
            parsers = f", parsers {self.parsers[name] >> 20}" if self.parsers[name] else ""
            yield f"{name}: MiB idle {idle >> 20}, peak {self.peak[name] >> 20}{parsers}; starts {starts.get(name, 1)}"
