"""The dictionary: assigns durable term ids, over Arrow Flight. Run: `python -m penstock.services.dictionary`."""
