"""Binds the lifetime of child processes to their parent."""

from __future__ import annotations

import os
import shutil

_IF_PARENT_LIVES = 'test "$PPID" = "$0" && exec "$@"'


def dies_with_parent() -> list[str]:
    """Return a command prefix that makes the kernel kill the process when its parent ends (PR_SET_PDEATHSIG).

    The prefix is empty if `setpriv` is not installed. The kernel watches the thread that starts the child. This thread
    must therefore live as long as the child. The child requests the signal from the kernel. If the parent ends before
    this request, the kernel sends no signal. The prefix therefore runs the command only if the child's parent is still
    this process.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "sh", "-c", _IF_PARENT_LIVES, str(os.getpid())] if setpriv else []
