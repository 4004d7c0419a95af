"""Query sets of a cluster: the reading of their members from topics, and the progress of their groups (ADR 92)."""
