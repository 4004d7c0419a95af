"""Standing queries that begin in the past: the past that the engine retains, and how these queries catch up (ADR
87).
"""
