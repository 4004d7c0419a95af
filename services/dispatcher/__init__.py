"""The dispatcher: computes event time and closes batches. Run: `python -m penstock.services.dispatcher`."""
