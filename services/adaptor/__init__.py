"""The adaptor: events to tuples of term ids. `python -m penstock.services.adaptor` runs it."""
