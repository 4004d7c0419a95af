"""A supervisor of service processes. It starts processes, restarts processes that have ended, and reports repeated
failures.

A service restarts at once after its first failure. After each further consecutive failure, it restarts after a pause.
The pause doubles each time, up to RESTART_MAX_S (inclusive). From the third consecutive failure on, the supervisor
reports why the service ended. The reason comes from the last log record with the event `failed`. If the log has no such
record, the reason is the last line of the log. The supervisor reports an unchanged line again only when the number of
failures is a power of two (4, 8, 16 …).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.broker.processes import dies_with_parent
from penstock.private_files import opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

RESTART_FIRST_S, RESTART_MAX_S = 0.5, 30.0
"""Pause in seconds before the second consecutive restart, and the maximum pause."""
RESTART_RESET_S = 60.0
"""After this time in s without a failure, a service has recovered, and its failure count is reset."""
REPORTED_FAILURES = 3
"""Number of consecutive failures from which on the supervisor reports failures."""
_STOP_S = 10.0
_TAIL_BYTES = 1 << 18


@dataclass(slots=True)
class Supervised:
    """A service process: how to start it, and its state."""

    name: str
    module: str
    settings: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0
    failures: int = 0
    killed: bool = False
    started_s: float = 0.0
    due_s: float = 0.0
    log_begin: int = 0
    reported: str = ""

    @property
    def running(self) -> bool:
        """Whether the process is running."""
        return self.process is not None and self.process.poll() is None


@dataclass(slots=True)
class Supervisor:
    """Service processes. They write their logs to files in `directory`. `report`: called with messages for the user."""

    directory: Path
    report: Callable[[str], None] | None = None
    now: Callable[[], float] = time.monotonic
    services: dict[str, Supervised] = field(default_factory=dict)
    # The kernel ends a child when the thread that started it ends (`dies_with_parent`), so one thread starts them all.
    _starter: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, "supervisor"))

    def log_path(self, service: Supervised) -> Path:
        """Return the path of a service's log file."""
        return self.directory / f"{service.name}.log"

    def watch(self) -> None:
        """Start services that were not started yet. Restart services that have ended and whose pause is over."""
        for service in list(self.services.values()):
            if service.process is None:
                self._start(service)
            elif service.process.poll() is not None:
                self._ended(service)

    def _ended(self, service: Supervised) -> None:
        if service.killed:
            self._start(service)
            return
        if not service.due_s:
            self._count(service)
        if self.now() >= service.due_s:
            self._start(service)

    def _count(self, service: Supervised) -> None:
        now = self.now()
        recovered = now - service.started_s >= RESTART_RESET_S
        service.failures = 1 if recovered else service.failures + 1
        pause = 0.0 if service.failures == 1 else RESTART_FIRST_S * 2 ** min(service.failures - 2, 20)
        service.due_s = now + min(pause, RESTART_MAX_S)
        if service.failures >= REPORTED_FAILURES:
            self._report(service, service.due_s - now)

    def _report(self, service: Supervised, pause_s: float) -> None:
        """Report a failure. An unchanged log line is reported again only when the number of failures has doubled."""
        line = self.last_line(service)
        again = service.failures & (service.failures - 1) == 0
        if self.report is None or (line == service.reported and not again):
            return
        service.reported = line
        assert service.process is not None
        self.report(
            f"{service.name} ended {service.failures} times in a row ({_end(service.process.returncode)}); "
            f"next start in {pause_s:.1f} s. Log: {self.log_path(service)}\n  {line}"
        )

    def _start(self, service: Supervised) -> None:
        self._starter.submit(self._spawn, service).result()
        service.starts += 1
        service.killed, service.started_s, service.due_s = False, self.now(), 0.0

    def _spawn(self, service: Supervised) -> None:
        with opened(self.log_path(service), "ab") as log:
            service.log_begin = log.tell()
            service.process = subprocess.Popen(  # noqa: S603 - our own modules
                [*dies_with_parent(), sys.executable, "-m", service.module],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | service.settings,
                start_new_session=True,  # Ctrl-C in a terminal reaches only the supervisor
            )

    def kill(self, name: str) -> None:
        """Kill a service without a graceful shutdown (SIGKILL). `watch` restarts it at once."""
        service = self.services[name]
        assert service.process is not None, name
        service.process.send_signal(signal.SIGKILL)
        service.process.wait()
        service.killed = True

    def stop(self) -> None:
        """Stop all services with SIGTERM. Kill services that take longer than `_STOP_S` seconds."""
        self._starter.submit(lambda: None).result()  # wait for an interrupted start to finish
        running = [service.process for service in self.services.values() if service.process is not None]
        for process in running:
            process.terminate()
        deadline = self.now() + _STOP_S
        for process in running:
            try:
                process.wait(max(deadline - self.now(), 0.1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._starter.shutdown()

    # ---- logs
    def records(self, service: Supervised) -> Iterator[dict[str, Any]]:
        """Yield the log records of a service since its last start, the newest first. Reads only the last `_TAIL_BYTES`
        of the log. A line that is not a JSON object becomes a record with the line as its member `event`.
        """
        with self.log_path(service).open("rb") as log:
            end = log.seek(0, os.SEEK_END)
            log.seek(max(service.log_begin, end - _TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").splitlines()
        for line in reversed(lines):
            if line.strip():
                yield _record(line)

    def last_line(self, service: Supervised) -> str:
        """Return the reason why a service ended, from its last log record with the event `failed`. If the log has no
        such record, return the last log line.
        """
        last = ""
        for record in self.records(service):
            last = last or str(record.get("event", ""))
            if record.get("event") == "failed":
                reason = record.get("reason") or str(record.get("exception", "")).strip().rpartition("\n")[2]
                return f"failed: {reason}"
        return last or "(no log)"


def _record(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {"event": line}
    return found if isinstance(found, dict) else {"event": line}


def _end(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
