"""Measures of a query engine: its commits, and the work of its buckets."""
