"""Updates of a cluster: a query engine evaluates them, and the coordinator writes their effects (ADR 76)."""
