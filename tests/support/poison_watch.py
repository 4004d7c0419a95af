"""The memory, ports and restarts of a cluster and of a `penstock serve` under attack."""

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
"""How many bytes events and requests in progress may take, in addition to twice the idle memory."""
STARTS = 3
LOG_CHARACTERS = 20_000


def listening(pids: list[int]) -> list[int]:
    """Return the ports that processes listen on."""
    inodes = set()
    for pid in pids:
        with suppress(OSError):
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    inodes.update(re.findall(r"socket:\[(\d+)\]", str(entry.readlink())))
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [int(each[1].partition(":")[2], 16) for each in lines if each[3] == "0A" and each[9] in inodes]


def tree(pid: int) -> list[int]:
    """Return a process and its descendants."""
    with suppress(OSError):
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *(each for child in children for each in tree(int(child)))]
    return []


def _status(pid: int, name: str) -> int:
    """Return a figure of /proc/PID/status in bytes; 0 if the process has ended."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) << 10
    return 0


def held(pid: int) -> int:
    """Return the memory of a process in bytes, with the shared memory that it has touched."""
    return _status(pid, "VmRSS")


def peak(pid: int) -> int:
    """Return the peak memory of a process since `forget_peak`, in bytes."""
    return _status(pid, "VmHWM")


def forget_peak(pid: int) -> None:
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


class Served:
    """A `penstock serve` with one stream of good events, and a query over it."""

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
        """Return whether each of the last 50 instants has one answer, with one row."""
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
    """Watches the memory of each process (idle, peak), shared regions, parser processes and restarts."""

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
        """Return the bytes of the stores' regions in shared memory."""
        folder = self._cluster.services["store-0"].settings["PENSTOCK_REGIONS_DIR"]
        found = 0
        for path in Path(folder).rglob("*"):
            with suppress(OSError):
                found += path.stat().st_blocks * 512
        return found

    def look(self) -> None:
        """Update all figures, and restart processes that have ended."""
        for name, pid in self.pids().items():
            self.peak[name] = max(peak(pid), self.peak[name])
            children = sum(peak(child) for child in tree(pid)[1:])
            self.parsers[name] = max(children, self.parsers[name])
        self.peak["regions"] = max(self._regions(), self.peak["regions"])
        self._cluster.watch()

    def beyond(self) -> dict[str, str]:
        """Return what has grown too much, and which processes end repeatedly."""
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
        """Return the HTTP port of a service, from its log."""
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
        """Yield the figures, one line for each, and the end of the log of each service that was started again."""
        starts = {name: service.starts for name, service in self._cluster.services.items()}
        for name, idle in self.idle.items():
            parsers = f", parsers {self.parsers[name] >> 20}" if self.parsers[name] else ""
            yield f"{name}: MiB idle {idle >> 20}, peak {self.peak[name] >> 20}{parsers}; starts {starts.get(name, 1)}"
        for name, service in self._cluster.services.items():
            if service.starts > 1:
                log = self._cluster.supervisor.log_path(service).read_text(errors="replace")
                yield f"log of {name}, which ended:\n{log[-LOG_CHARACTERS:]}"
