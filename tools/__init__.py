"""Programs that the Makefile runs."""
