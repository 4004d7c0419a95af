"""The store: shards of the stored graph, served to engines. `python -m penstock.services.store` runs it."""
