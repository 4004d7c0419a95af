"""Store nodes as processes, for benchmarks."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.node import Address

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = secrets.token_hex(16).encode()


@contextmanager
def store_node(number: int, count: int) -> Iterator[tuple[int, Address]]:
    """A node that has every count-th of as many shards: its process and its address."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        secret = Path(folder) / "secret"
        secret.write_bytes(SECRET)
        command = [sys.executable, "-m", "penstock.node", f"--directory={folder}/regions", f"--secret-file={secret}"]
        command += [f"--shards={count}", f"--own={number}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield process.pid, Address("127.0.0.1", json.loads(process.stdout.readline())["port"])
        finally:
            process.kill()
            process.wait()
