"""Binds the lifetime of child processes to their parent."""

from __future__ import annotations

import os
import shutil

_IF_PARENT_LIVES = 'test "$PPID" = "$0" && exec "$@"'


def dies_with_parent() -> list[str]:
    """Return a command prefix. With this prefix, the kernel kills the child process when the parent ends
    (PR_SET_PDEATHSIG).

    The prefix is empty if `setpriv` is not installed. The kernel sends the signal when the thread that started the
    child ends. This thread must therefore live as long as the child.

    The child itself requests this signal from the kernel. If the parent ends before the request, the kernel sends no
    signal. After the request, the prefix therefore checks that the parent is still alive, and only then runs the
    command.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", "sh", "-c", _IF_PARENT_LIVES, str(os.getpid())] if setpriv else []
