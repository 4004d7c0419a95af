"""The progress of query groups and query sets: the state in the records of the progress topic (ADR 28, 54)."""
