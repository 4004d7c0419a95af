"""The dispatcher: event time, closed batches. Run: `python -m penstock.services.dispatcher`."""
