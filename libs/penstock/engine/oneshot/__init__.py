"""One-shot queries on the latest snapshot, and EXPLAIN."""
