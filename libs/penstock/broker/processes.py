"""Binds the lifetime of child processes to their parent."""

from __future__ import annotations

import shutil


def dies_with_parent() -> list[str]:
    """Return a command prefix that makes the kernel kill the process when its parent ends (PR_SET_PDEATHSIG).

    The prefix is empty if `setpriv` is not installed. The kernel watches the parent thread, so start the process from a
    thread that lives as long as the parent process.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []
