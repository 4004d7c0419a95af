"""Binds the lifetime of child processes to their parent."""

from __future__ import annotations

import os
import shutil

_IF_PARENT_LIVES = 'test "$PPID" = "$0" && exec "$@"'


def dies_with_parent() -> list[str]:
    """Return a command prefix that makes the kernel kill the process when its parent ends (PR_SET_PDEATHSIG).

    The prefix is empty if `setpriv` is not installed. The kernel watches the parent thread, so start the process from a
    thread that lives as long as the parent process. The kernel sends no signal if the parent has ended before the
    request; the command therefore starts only if its parent is still this process.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "sh", "-c", _IF_PARENT_LIVES, str(os.getpid())] if setpriv else []
