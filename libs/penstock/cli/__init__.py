"""The command line interface. `penstock --help` lists the commands. No other package prints to the terminal.

`app` assembles the commands. `local` has the commands of the embedded engine, `cluster` the commands of a cluster. Exit
codes: 0 success, 1 failure, 2 wrong usage or a query error.
"""

from penstock.cli.app import main

__all__ = ["main"]
