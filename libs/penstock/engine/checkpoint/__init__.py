"""Durability of an engine: checkpoints, the write-ahead log, recovery."""
