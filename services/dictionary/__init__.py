"""The dictionary: assigns durable term ids to clients, which connect by Arrow Flight. Run: `python -m
penstock.services.dictionary`.
"""
