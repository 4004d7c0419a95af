"""Standing queries that begin in the past: the data that the engine retains for these queries, and their catch-up (ADR
87).
"""
