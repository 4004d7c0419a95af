"""The coordinator: checks declarations and registrations, and assigns shards and buckets. Run: `python -m
penstock.services.coordinator`.
"""
