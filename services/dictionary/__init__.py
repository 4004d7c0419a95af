"""The dictionary: assigns durable ids to terms, for clients that connect by Arrow Flight. Run: `python -m
penstock.services.dictionary`.
"""
