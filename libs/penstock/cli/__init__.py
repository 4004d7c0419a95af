"""The command line: `penstock demo | load | query | run | explain`. Only this package prints.

One module a command, `app` puts them together, `display` draws answers, `recording` reads recorded
streams. Exit codes: 0 fine, 1 the work failed, 2 wrong usage or a query error.
"""

from penstock.cli.app import main

__all__ = ["main"]
