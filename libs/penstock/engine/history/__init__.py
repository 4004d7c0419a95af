"""Standing queries that begin in the past: what the engine retains of it, and how they catch up (ADR 87)."""
