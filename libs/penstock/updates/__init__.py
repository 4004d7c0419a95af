"""Updates of a cluster. A query engine evaluates an update, and the coordinator writes the effect of the update (ADR
76).
"""
