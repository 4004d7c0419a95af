"""HTTP of the services: the coordinator's verbs, and one-shot queries by the SPARQL 1.1 Protocol.

Routes only: `penstock.runtime` serves them beside health and metrics.
"""
