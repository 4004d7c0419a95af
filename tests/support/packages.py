"""Programs that tests take from the machine: installed where they are missing and may be."""

from __future__ import annotations

import os
import shutil
import subprocess

_PATIENCE_S = 240


def program(name: str) -> str | None:
    """Return where a program is, once the Debian package of its name is installed; None where it cannot be."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and (apt := shutil.which("apt-get")):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "timeout": _PATIENCE_S, "check": False}
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for step in (["update"], ["install", "-y", "--no-install-recommends", name]):
            subprocess.run([apt, "-o", "DPkg::Lock::Timeout=120", "-qq", *step], env=environment, **quiet)
        found = shutil.which(name)
    return found
