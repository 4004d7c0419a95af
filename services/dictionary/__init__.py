"""The dictionary: durable ids of terms over Arrow Flight. `python -m penstock.services.dictionary` runs it."""
