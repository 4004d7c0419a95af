"""Generations of transient terms: the coordinator decides when the dictionary removes terms (ADR 50)."""
