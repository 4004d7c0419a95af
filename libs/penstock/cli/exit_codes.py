"""What the command's end tells a shell (docs/api.md)."""

FINE = 0
FAILED = 1
"""The work failed."""
USAGE = 2
"""Wrong usage, or a query error."""
