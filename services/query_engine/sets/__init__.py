"""Query sets of a cluster: the reading of their members from topics, and the results of these members (ADR 92)."""
