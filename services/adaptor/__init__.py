"""The adaptor: converts events to tuples of term ids. Run: `python -m penstock.services.adaptor`."""
