"""Standing queries that begin in the past: the past that the engine retains, and how they catch up (ADR 87)."""
