"""The store: holds shards of the stored graph, which query engines read. Run: `python -m penstock.services.store`."""
