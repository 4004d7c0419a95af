"""HTTP of the services: the coordinator's verbs, and one-shot queries by the SPARQL 1.1 Protocol.

Needs the `cluster` extra. `server` runs an application beside a service's loop.
"""
