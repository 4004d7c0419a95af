"""Requests of the coordinator for the members of query sets."""
