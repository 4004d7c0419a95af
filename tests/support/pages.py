"""Runs the code blocks of a page in order, as a reader would.

A block with `title="NAME"` is written to the file NAME. A `sh` block is run by bash. A `text` block that follows a `sh`
block is what the block prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BOUND_S = 120.0


class Block(NamedTuple):
    language: str
    title: str | None
    text: str


def blocks_of(page: Path) -> list[Block]:
    found = _BLOCK.findall(page.read_text(encoding="utf-8"))
    titles = [re.search(r'title="([^"]+)"', options) for _, options, _ in found]
    return [Block(each[0], title and title[1], each[2]) for each, title in zip(found, titles, strict=True)]


def run_page(page: Path, folder: Path, change: Callable[[str], str] = str, skip: tuple[str, ...] = ()) -> None:
    """Run every block except the `sh` blocks that begin with a text of `skip`."""
    printed: str | None = None
    for block in blocks_of(page):
        text = change(block.text)
        if block.title is not None:
            (folder / block.title).write_text(text, encoding="utf-8")
        elif block.language == "text":
            assert printed is not None, f"no command prints:\n{text}"
            assert printed.strip() == text.strip()
            printed = None
        elif block.language == "sh" and not text.startswith(skip):
            printed = _shell(text, folder)
        else:
            assert block.language == "sh", f"a block that is not run:\n{text}"


def _shell(text: str, folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["bash", "-euo", "pipefail", "-c", text]
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout
