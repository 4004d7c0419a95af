"""Suites and data written by others. They are read where they are, and never copied into the repository.

The folder is $PENSTOCK_SHARED, or `../shared` beside the checkout. A test that needs a missing part is skipped, and
names the part.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("PENSTOCK_SHARED") or REPOSITORY.parent / "shared").resolve()


def available(part: str) -> bool:
    return (SHARED / part).exists()


def need(part: str) -> Path:
    """Return the path of a part of the shared folder. If it is absent, the test (or module) that asks is skipped."""
    if not available(part):
        pytest.skip(f"shared/{part} is not beside this checkout (see PENSTOCK_SHARED)", allow_module_level=True)
    return SHARED / part


def module(part: str) -> ModuleType:
    """Import a script of the shared folder."""
    path = need(part)
    name = "shared_" + path.stem
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        wrote = sys.dont_write_bytecode
        sys.dont_write_bytecode = True  # the shared folder may be read-only, and belongs to others
        try:
            spec.loader.exec_module(loaded)
        finally:
            sys.dont_write_bytecode = wrote
    return sys.modules[name]
