"""The dispatcher: event time and closed batches. Run: `python -m penstock.services.dispatcher`."""
