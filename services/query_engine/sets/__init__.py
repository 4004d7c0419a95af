"""Query sets of a cluster: the reading of members from topics, and the results of members (ADR 92)."""
