"""Answers of queries: their values, blocks of pending answers, the result queue of each query, and result formats."""
