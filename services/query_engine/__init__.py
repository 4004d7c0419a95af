"""The query engine: buckets of standing queries, results. Run: `python -m penstock.services.query_engine`."""
