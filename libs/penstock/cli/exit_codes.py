"""Exit codes of the command (docs/api.md)."""

FINE = 0
FAILED = 1
"""The command failed."""
USAGE = 2
"""The usage is wrong, or a query has an error."""
