"""One-shot queries and EXPLAIN over the latest stable snapshot."""
