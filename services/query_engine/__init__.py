"""The query engine: evaluates standing queries and one-shot queries. Run: `python -m
penstock.services.query_engine`.
"""
