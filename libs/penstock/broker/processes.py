"""How child processes are tied to the process that starts them."""

from __future__ import annotations

import shutil


def dies_with_parent() -> list[str]:
    """Return the prefix of a command that the kernel kills when its parent ends (PR_SET_PDEATHSIG); empty without
    `setpriv`.

    The kernel watches the thread that started the process: start it from one that lives as long as the parent.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL"] if setpriv else []
