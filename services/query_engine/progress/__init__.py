"""The progress of query groups and query sets: their state as records of the progress topic contain it (ADR 28, 54)."""
