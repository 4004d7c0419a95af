"""The command line: `penstock --help` lists the commands. Only this package prints.

One module a command, except for the short ones in `app`, which puts them together; `display` draws answers, `recording`
reads recorded streams, `kills` is the schedule by which `demo_cluster` kills processes.
Exit codes: 0 fine, 1 the work failed, 2 wrong usage or a query error.
"""

from penstock.cli.app import main

__all__ = ["main"]
