"""The library: what `pip install penstock` gives."""
