"""Programs of the machine that tests use. A missing program is installed if this user may install it."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress

_PATIENCE_S = 240


def program(name: str) -> str | None:
    """Return the path of a program, after its Debian package (of the same name) was installed if needed; else None."""
    found = shutil.which(name)
    if found is None and os.geteuid() == 0 and (apt := shutil.which("apt-get")):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        with suppress(subprocess.SubprocessError):
            for step in (["update"], ["install", "-y", "--no-install-recommends", name]):
                command = [apt, "-o", "DPkg::Lock::Timeout=120", "-qq", *step]
                subprocess.run(command, env=environment, capture_output=True, timeout=_PATIENCE_S, check=True)
        found = shutil.which(name)
    return found
