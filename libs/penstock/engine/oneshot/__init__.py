"""One-shot queries on the latest snapshot, updates, and EXPLAIN."""
