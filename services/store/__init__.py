"""The store: serves shards of the stored graph to engines. Run: `python -m penstock.services.store`."""
