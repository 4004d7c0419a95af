"""Where regions lie in tests that write much: in memory, as they do in production."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def shared_memory(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="penstock-test-", dir=memory)) if memory.is_dir() else tmp_path
    yield directory
    shutil.rmtree(directory, ignore_errors=True)
